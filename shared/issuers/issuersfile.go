package issuers

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse parses a file of issuers: a YAML list of E. The error for an unknown member lists settings, which names the
// known ones. An empty file is an error, because somebody may be about to write it: a list without issuers is written
// [].
func Parse[E any](data []byte, settings string) ([]E, error) {
	var list []E
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	err := d.Decode(&list)
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: it must list at least one issuer")
	}
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		text = inIssuer.ReplaceAllString(text, "(there are "+settings+")")
		text = intoIssuers.ReplaceAllString(text, "into a list of issuers")
		return nil, errors.New(intoIssuer.ReplaceAllString(text, "into an issuer"))
	}
	return list, nil
}

// The names that errors of the decoder give to types.
var (
	inIssuer    = regexp.MustCompile(`in type \w+\.Issuer`)
	intoIssuers = regexp.MustCompile(`into \[\]\w+\.Issuer`)
	intoIssuer  = regexp.MustCompile(`into \w+\.Issuer`)
)
