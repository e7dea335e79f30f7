package columns

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"tidings.example/eventsvc/internal/event"
)

// A Query says which rows are looked for.
type Query struct {
	From, To int64 // seconds, To is not part of them: an observation of the row is in this range
	// Late and Early are microseconds of the first and of the last second in which [Scan.Find] finds nothing: those
	// before the range, and those behind it.
	Late, Early int64
	Spans       bool   // [Scan.Find] finds rows that have one before the last of their observations, too
	Last        uint64 // only versions up to this revision
	Filter      *event.Filter
	Whole       bool // light rows do not match, whatever the filter is
	// Held reports whether a version matches a filter that columns cannot decide.
	Held func(revision uint64, f *event.Filter) (bool, error)
}

// A Scan is a query of one table. It decides chunk by chunk which rows match.
type Scan struct {
	*Query
	table *Table
	root  *node
	light bool // light rows match too

	chunk   int
	rows    rowSet     // of the chunk: those that match
	times   chunkTimes // of the chunk that was asked for last
	opened  [numColumns]openChunk
	groups  [numColumns]openGroup
	have    uint64               // columns of the chunk that were read whole
	numbers [numColumns][]uint64 // nil: not read of any chunk
	noted   openChunk            // the words of notes
	words   []uint64             // those of a table that grows
	codes   uint64               // those of words are less
	ends    []int                // in noted, of the words before each row, and of all; empty: they are not known
	notes   [][]byte
	room    []byte
	pattern patterns
}

// chunkTimes is what a chunk tells of the times of its rows: the seconds in which they were observed, or further ones,
// and whether some have a span.
type chunkTimes struct {
	chunk       int // 1 beyond its number
	first, last int64
	spans       bool
}

// A node is a filter by the codes of a table.
type node struct {
	kind   event.FilterKind
	filter *event.Filter
	parts  []*node
	column int      // of codes
	codes  *codeSet // nil: the versions that are held decide
	word   *wordPlan
	// patterns tells which ones fit, by their codes; nil: the filter is none of patterns.
	patterns map[uint64]bool
	wanted   map[[numDims]uint64]bool
	chunks   chunkSet // of places: those that have rows of them
}

// The outcomes of a filter that is decided for all rows of a table.
var (
	everything = &node{}
	nothing    = &node{kind: event.FilterAny}
)

// Scan begins a scan. There is none, and no error, if no row can match.
func (t *Table) Scan(q *Query) (*Scan, error) {
	if !t.May(q) || t.base > q.Last {
		return nil, nil
	}
	s := &Scan{Query: q, table: t, root: everything, light: !q.Whole && (q.Filter == nil || q.Filter.OnDimensions()), chunk: -1}
	if q.Filter != nil {
		var err error
		if s.root, err = s.compile(q.Filter); err != nil || s.root == nothing {
			return nil, err
		}
	}
	return s, nil
}

// compile finds out what the dictionaries say of a filter.
func (s *Scan) compile(f *event.Filter) (*node, error) {
	switch f.Kind {
	case event.FilterAll, event.FilterAny, event.FilterNot:
		return s.compound(f)
	case event.FilterDimension:
		if f.OnPattern() {
			return &node{kind: f.Kind, filter: f, patterns: map[uint64]bool{}}, nil
		}
		column := slices.Index(dimensionNames[:], f.Dimension)
		return s.fitting(column, func(text string) bool { return f.Fits(event.CutDimension(text)) })
	case event.FilterPlace:
		return s.place(f)
	case event.FilterDimensions:
		return &node{kind: f.Kind, filter: f, wanted: map[[numDims]uint64]bool{}}, nil
	case event.FilterWord:
		if bytes.IndexByte(f.Word, 0) >= 0 {
			return nothing, nil
		}
		p, err := s.table.planWord(f.Word, f.Note)
		if err != nil {
			return nil, err
		}
		if !p.any {
			return nothing, nil
		}
		return &node{kind: f.Kind, filter: f, word: p}, nil
	case event.FilterGap:
		return s.gaps(f), nil
	case event.FilterLabels:
		return s.fitting(colLabels, func(set string) bool { return !isLight(set) && f.Labels(event.OfLabelSet([]byte(set))) })
	}
	return s.field(f)
}

func (s *Scan) compound(f *event.Filter) (*node, error) {
	n := &node{kind: f.Kind}
	neutral, decides := everything, nothing // of FilterAll
	if f.Kind == event.FilterAny {
		neutral, decides = nothing, everything
	}
	for _, part := range f.Parts {
		p, err := s.compile(part)
		if err != nil {
			return nil, err
		}
		if f.Kind == event.FilterNot {
			return negation(p), nil
		}
		if p == decides {
			return decides, nil
		}
		if p != neutral {
			n.parts = append(n.parts, p)
		}
	}
	if len(n.parts) == 0 {
		return neutral, nil
	}
	slices.SortStableFunc(n.parts, func(a, b *node) int { return cmp.Compare(a.cost(), b.cost()) })
	return n, nil
}

// negation returns the filter of what another one does not match.
func negation(n *node) *node {
	switch n {
	case everything:
		return nothing
	case nothing:
		return everything
	}
	return &node{kind: event.FilterNot, parts: []*node{n}}
}

// cost orders the parts of a filter: those first that are decided faster, and of codes those that are fewer.
func (n *node) cost() float64 {
	switch {
	case n.codes != nil:
		return float64(n.codes.n) / float64(len(n.codes.has))
	case n.word != nil:
		return 2
	case n.patterns != nil:
		return 3
	case n.kind == event.FilterField:
		return 3
	}
	return 1
}

// fitting returns a filter of the codes of a column whose texts fit.
func (s *Scan) fitting(column int, fits func(text string) bool) (*node, error) {
	d, err := s.table.dict(column)
	if err != nil {
		return nil, err
	}
	return ofCodes(column, d.fitting(fits)), nil
}

func ofCodes(column int, set *codeSet) *node {
	switch set.n {
	case 0:
		return nothing
	case len(set.has):
		return everything
	}
	return &node{kind: event.FilterDimension, column: column, codes: set}
}

// fieldColumns are the fields that have a column of their own.
var fieldColumns = map[event.Field]int{
	event.FieldNamespace: colNamespace, event.Type: colType, event.Reason: colReason, event.RegardingKind: colKind, event.RegardingName: colObject,
}

// field compiles a filter of a field.
func (s *Scan) field(f *event.Filter) (*node, error) {
	if column, ok := fieldColumns[f.Field]; ok {
		if f.Exact == "" {
			return s.fitting(column, f.Fits)
		}
		texts, err := s.table.finder(column)
		if err != nil {
			return nil, err
		}
		n := ofCodes(column, texts.exactly([]byte(f.Exact)))
		if column == colNamespace && n.codes != nil {
			err = s.placed(n)
		}
		return n, err
	}
	switch f.Field {
	case event.RegardingAPIVersion, event.RegardingFieldPath:
		return s.fitting(colPlace, func(place string) bool {
			version, path, _ := cutPlace([]byte(place))
			if f.Field == event.RegardingFieldPath {
				version = path
			}
			return f.Fits(string(version))
		})
	case event.ReportingController, event.Source:
		return s.reporting(f)
	case event.RegardingUID, event.RegardingNamespace:
		return s.object(f)
	}
	return &node{kind: event.FilterField, filter: f}, nil
}

// gaps compiles a filter of marks.
func (s *Scan) gaps(f *event.Filter) *node {
	if s.table.marked == 0 {
		return nothing
	}
	set := &codeSet{has: make([]bool, gapDropped+1)}
	if set.add(gapNobody); f.Dropped {
		set = &codeSet{has: make([]bool, gapDropped+1)}
		set.add(gapDropped)
	}
	return ofCodes(colGap, set)
}

// reporting compiles a filter of the controller or the source, of which most are the reporter.
func (s *Scan) reporting(f *event.Filter) (*node, error) {
	reporter, err := s.fitting(colReporter, f.Fits)
	if err != nil {
		return nil, err
	}
	isReporter := func(how []byte) bool {
		return len(how) == 0 || (how[0] == sourceOnly) == (f.Field == event.Source)
	}
	same, err := s.fitting(colPlace, func(place string) bool {
		_, _, how := cutPlace([]byte(place))
		return isReporter(how)
	})
	if err != nil {
		return nil, err
	}
	other, err := s.fitting(colPlace, func(place string) bool {
		_, _, how := cutPlace([]byte(place))
		return !isReporter(how) && f.Fits(string(how[1:])) // of a version without a controller that is nothing
	})
	return either(both(reporter, same), other), err
}

func both(a, b *node) *node {
	if a == nothing || b == nothing {
		return nothing
	}
	return &node{kind: event.FilterAll, parts: []*node{a, b}}
}

func either(a, b *node) *node {
	if b == nothing {
		return a
	}
	return &node{kind: event.FilterAny, parts: []*node{a, b}}
}

// object compiles a filter of what tells objects of one name apart.
func (s *Scan) object(f *event.Filter) (*node, error) {
	d, err := s.table.dict(dictObjectOf)
	if err != nil {
		return nil, err
	}
	namespaces, err := s.table.dict(colNamespace)
	if err != nil {
		return nil, err
	}
	var wanted *codeSet // namespaces
	if f.Field == event.RegardingNamespace {
		wanted = namespaces.fitting(f.Fits)
	}
	if wanted == nil && f.Exact != "" { // others are not decoded
		uids, err := s.table.finder(dictObjectOf)
		if err != nil {
			return nil, err
		}
		return ofCodes(colObject, uids.exactly(appendUID(nil, []byte(f.Exact)))), nil
	}
	set := &codeSet{has: make([]bool, d.len())}
	for code := range set.has {
		_, namespace, uid, ok := splitObject(d, code)
		switch {
		case !ok || namespace >= namespaces.len():
			err = s.table.damaged(columnOfDicts+dictObjectOf, 0)
		case wanted != nil && wanted.has[namespace], wanted == nil && f.Fits(string(uidOf(uid))):
			set.add(code)
		}
	}
	return ofCodes(colObject, set), err
}

// column returns the numbers of a column of the chunk. Only those of some rows are valid.
func (s *Scan) column(column int, of *rowSet) ([]uint64, error) {
	if g := s.table.growing; g != nil {
		s.numbers[column] = g.chunk(column, s.chunk)
		return s.numbers[column], nil
	}
	if s.numbers[column] == nil {
		s.numbers[column] = make([]uint64, min(ChunkRows, s.table.rows))
	}
	dst := s.numbers[column][:s.table.chunkLen(s.chunk)]
	if s.have&(1<<column) != 0 {
		return dst, nil
	}
	limit, err := s.table.limit(column)
	if err != nil {
		return nil, err
	}
	c, err := s.open(column, s.chunk)
	if err != nil {
		return nil, err
	}
	if of.len() < fewRows {
		for row := range of.all {
			if dst[row] = c.at(row); limit > 0 && dst[row] >= uint64(limit) {
				return nil, s.table.damaged(column, s.chunk)
			}
		}
		return dst, nil
	}
	if !c.read(dst, limit) {
		return nil, s.table.damaged(column, s.chunk)
	}
	s.have |= 1 << column
	return dst, nil
}

// whole returns the numbers of a column of all rows of the chunk.
func (s *Scan) whole(column int) ([]uint64, error) {
	var all rowSet
	all.fill(s.table.chunkLen(s.chunk))
	return s.column(column, &all)
}

// fewRows is the number of rows of a chunk that are read one by one.
const fewRows = 64

// open opens a chunk of a column.
func (s *Scan) open(column, chunk int) (c *openChunk, err error) {
	if c = &s.opened[column]; c.number != chunk+1 {
		*c, err = s.table.openIn(&s.groups[column], column, chunk, s.table.chunkLen(chunk))
	}
	return c, err
}

// May reports whether a chunk can have rows that match, as far as their places and times tell.
func (s *Scan) May(chunk int) (bool, error) {
	if !s.root.may(chunk) {
		return false, nil
	}
	if s.table.from >= s.From && s.table.to < s.To {
		return true, nil
	}
	first, last, err := s.ChunkTimes(chunk)
	return first < s.To && last >= s.From, err
}

// Select selects the rows of a chunk that match, and returns how many they are.
func (s *Scan) Select(chunk int) (n int, err error) {
	s.begin(chunk)
	if may, err := s.May(chunk); err != nil || !may {
		return 0, err
	}
	rows := &s.rows
	rows.fill(s.table.chunkLen(chunk))
	err = s.within(rows)
	if err == nil && s.table.id > s.Last {
		err = s.upTo(rows)
	}
	if err == nil && !s.light {
		err = s.unlit(rows)
	}
	if err == nil {
		err = s.narrow(s.root, rows)
	}
	return rows.len(), err
}

// begin begins a chunk.
func (s *Scan) begin(chunk int) {
	s.chunk, s.have, s.ends, s.notes, s.rows = chunk, 0, s.ends[:0], nil, rowSet{}
}

// Among appends those of some revisions, which are in order and of versions that are held, that a chunk has and the
// filter matches. Nothing else is asked of them. It reads no more of the chunk than they need.
func (s *Scan) Among(chunk int, some, dst []uint64) ([]uint64, error) {
	s.begin(chunk)
	var beyond func(row int) uint64
	if g := s.table.growing; g != nil {
		beyond = func(row int) uint64 { return g.chunk(colRevision, chunk)[row] }
	} else {
		c, err := s.open(colRevision, chunk)
		if err != nil {
			return dst, err
		}
		beyond = c.at
	}
	at := func(row int) uint64 { return s.revision(row, beyond(row)) }
	length := s.table.chunkLen(chunk)
	first, _ := slices.BinarySearch(some, at(0))
	for _, revision := range some[first:] {
		row := sort.Search(length, func(row int) bool { return at(row) >= revision })
		if row == length {
			break
		}
		if at(row) == revision {
			s.rows.add(row)
		}
	}
	if s.rows.empty() {
		return dst, nil
	}
	err := s.narrow(s.root, &s.rows)
	for row := range s.rows.all {
		dst = append(dst, at(row))
	}
	return dst, err
}

// within leaves out rows without an observation in the range.
func (s *Scan) within(rows *rowSet) error {
	if s.table.from >= s.From && s.table.to < s.To {
		return nil
	}
	if first, last, err := s.ChunkTimes(s.chunk); err != nil || first >= s.From && last < s.To {
		return err
	}
	seconds, err := s.column(colSecond, rows)
	if err != nil {
		return err
	}
	spans, err := s.column(colSpan, rows)
	if err != nil {
		return err
	}
	from, to := biased(s.From), biased(s.To)
	for row, second := range seconds {
		if second < from || second >= to && second-spans[row]/1e6-1 >= to {
			rows.remove(row)
		}
	}
	return nil
}

// upTo leaves out versions that are newer than asked for.
func (s *Scan) upTo(rows *rowSet) error {
	revisions, err := s.column(colRevision, rows)
	if err != nil {
		return err
	}
	for row := range rows.all {
		if s.revision(row, revisions[row]) > s.Last {
			rows.remove(row)
		}
	}
	return nil
}

// unlit leaves out light rows.
func (s *Scan) unlit(rows *rowSet) error {
	if s.table.lights == 0 {
		return nil
	}
	d, err := s.table.dict(dictLabels)
	if err != nil {
		return err
	}
	return s.narrow(negation(ofCodes(colLabels, d.fitting(isLight))), rows)
}

// narrow leaves out rows that do not match.
func (s *Scan) narrow(n *node, rows *rowSet) error {
	switch {
	case n == everything:
		return nil
	case n == nothing:
		*rows = rowSet{}
		return nil
	case n.codes != nil:
		return s.ofCodes(n, rows)
	case n.word != nil:
		return s.word(n, rows)
	case n.patterns != nil:
		return s.ofPattern(n, rows)
	}
	switch n.kind {
	case event.FilterAll:
		return s.all(n, rows)
	case event.FilterAny:
		return s.either(n, rows)
	case event.FilterNot:
		matched := *rows
		err := s.narrow(n.parts[0], &matched)
		rows.less(&matched)
		return err
	case event.FilterPlace, event.FilterDimensions:
		return s.dimensions(n, rows)
	}
	return s.held(n, rows)
}

func (s *Scan) all(n *node, rows *rowSet) error {
	for _, part := range n.parts {
		if err := s.narrow(part, rows); err != nil || rows.empty() {
			return err
		}
	}
	return nil
}

// ofCodes leaves out rows whose codes do not match.
func (s *Scan) ofCodes(n *node, rows *rowSet) error {
	if s.have&(1<<n.column) == 0 && s.table.growing == nil {
		c, err := s.open(n.column, s.chunk)
		if err != nil {
			return err
		}
		if !n.codes.within(c.least, c.most()) {
			*rows = rowSet{}
			return nil
		}
		if n.codes.n <= 2 && rows.len() >= fewRows {
			last := *rows
			c.equal(uint64(n.codes.least), rows)
			if n.codes.n == 2 {
				c.equal(uint64(n.codes.most), &last)
				rows.join(&last)
			}
			return nil
		}
	}
	codes, err := s.column(n.column, rows)
	if err == nil {
		rows.keep(codes, n.codes.has)
	}
	return err
}

func (s *Scan) either(n *node, rows *rowSet) error {
	left := *rows
	*rows = rowSet{}
	for _, part := range n.parts {
		matched := left
		if err := s.narrow(part, &matched); err != nil {
			return err
		}
		rows.join(&matched)
		left.less(&matched)
	}
	return nil
}

// dimensions asks for each combination of dimensions once.
func (s *Scan) dimensions(n *node, rows *rowSet) error {
	columns := placeColumns
	if n.kind == event.FilterDimensions {
		columns = []int{colNamespace, colType, colReason, colKind, colReporter, colCluster, colOwner, colNode}
	}
	var codes [numDims][]uint64
	for _, c := range columns {
		var err error
		if codes[c], err = s.column(c, rows); err != nil {
			return err
		}
	}
	var key, last [numDims]uint64
	answer, known := false, false
	for row := range rows.all {
		for _, c := range columns {
			key[c] = codes[c][row]
		}
		if !known || key != last {
			if answer, known = n.wanted[key]; !known {
				d, err := s.table.dimensions(columns, &key)
				if err != nil {
					return err
				}
				if n.kind == event.FilterPlace {
					answer = n.filter.Allows(d.Namespace, d.Cluster)
				} else {
					answer = n.filter.Wants(d)
				}
				n.wanted[key] = answer
			}
			last, known = key, true
		}
		if !answer {
			rows.remove(row)
		}
	}
	return nil
}

// dimensions returns the dimensions of codes.
func (t *Table) dimensions(columns []int, codes *[numDims]uint64) (d event.Dimensions, err error) {
	for _, c := range columns {
		texts, err := t.dict(c)
		if err != nil {
			return d, err
		}
		*d.Text(dimensionNames[c]) = event.CutDimension(string(texts.at(int(codes[c]))))
	}
	return d, nil
}

// revision returns the revision of a row of the chunk, of what its column has.
func (s *Scan) revision(row int, beyond uint64) uint64 {
	return s.table.base + uint64(s.chunk*ChunkRows+row) + beyond
}

// held asks for versions one by one.
func (s *Scan) held(n *node, rows *rowSet) error {
	revisions, err := s.column(colRevision, rows)
	if err != nil {
		return err
	}
	for row := range rows.all {
		matches, err := s.Held(s.revision(row, revisions[row]), n.filter)
		if err != nil {
			return err
		}
		if !matches {
			rows.remove(row)
		}
	}
	return nil
}

// word leaves out rows that do not have a word.
func (s *Scan) word(n *node, rows *rowSet) error {
	templates, err := s.column(colTemplate, rows)
	if err != nil {
		return err
	}
	p := n.word
	left, found := *rows, rowSet{}
	for row := range left.all {
		if p.states[templates[row]] == always {
			found.add(row)
		}
	}
	left.less(&found)
	for i, set := range p.other {
		if set == nil || left.empty() {
			continue
		}
		codes, err := s.column(otherColumns[i], &left)
		if err != nil {
			return err
		}
		matched := left
		matched.keep(codes, set.has)
		found.join(&matched)
		left.less(&matched)
	}
	for row := range left.all {
		if p.states[templates[row]] != maybe {
			continue
		}
		has, err := s.noteHas(p, row, templates[row])
		if err != nil {
			return err
		}
		if has {
			found.add(row)
		}
	}
	*rows = found
	return nil
}

// noteHas reports whether the note of a row has a word of which its template does not tell.
func (s *Scan) noteHas(p *wordPlan, row int, template uint64) (bool, error) {
	if template == plainTemplate {
		note, err := s.plainNote(row)
		s.room = event.Fold(s.room[:0], note)
		return bytes.Contains(s.room, p.piece), err
	}
	begin, _, err := s.wordsOf(row)
next:
	for _, way := range p.ways[template] {
		for _, c := range way {
			word, damage := s.wordAt(begin + c.hole)
			if err = cmp.Or(err, damage); err != nil {
				return false, err
			}
			if !c.words.has[word] {
				continue next
			}
		}
		return true, nil
	}
	return false, err
}

// wordsOf returns where the words of a row begin and end among those of the chunk.
func (s *Scan) wordsOf(row int) (begin, end int, err error) {
	if len(s.ends) == 0 {
		if err := s.openWords(); err != nil {
			return 0, 0, err
		}
	}
	return s.ends[row], s.ends[row+1], nil
}

// wordAt returns a word of the chunk, whose words are open.
func (s *Scan) wordAt(at int) (uint64, error) {
	if s.table.growing != nil {
		return s.words[at], nil
	}
	word := s.noted.at(at)
	if word >= s.codes {
		return 0, s.table.damaged(colWords, s.chunk)
	}
	return word, nil
}

// openWords opens the words of the chunk, and finds out where those of each row end.
func (s *Scan) openWords() error {
	holes, err := s.table.holesOf()
	if err != nil {
		return err
	}
	templates, err := s.whole(colTemplate)
	if err != nil {
		return err
	}
	end := 0
	ends := append(s.ends, 0)
	for _, template := range templates {
		end += holes[template]
		ends = append(ends, end)
	}
	if g := s.table.growing; g != nil {
		s.words = g.chunk(colWords, s.chunk)
	} else if s.noted, err = s.table.openChunk(colWords, s.chunk, end); err != nil {
		return err
	}
	limit, err := s.table.limit(colWords)
	s.ends, s.codes = ends, uint64(limit)
	return err
}

// plainNote returns the note of a row without a template.
func (s *Scan) plainNote(row int) ([]byte, error) {
	templates, err := s.whole(colTemplate)
	if err != nil {
		return nil, err
	}
	if s.notes == nil {
		b, err := s.table.plain(s.chunk)
		if err != nil {
			return nil, err
		}
		s.notes = make([][]byte, len(templates))
		for i, template := range templates {
			if template != plainTemplate {
				continue
			}
			note, rest, ok := cutPlain(b)
			if !ok {
				return nil, s.table.damaged(columnOfPlain, s.chunk)
			}
			s.notes[i], b = note, rest
		}
	}
	return s.notes[row], nil
}
