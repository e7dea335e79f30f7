package bearer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ReadIssuers reads a file of issuers: a YAML list of I, whose members are named in settings for the error of a name that is
// none. An error names the file.
func ReadIssuers[I any](path, settings string) ([]I, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []I
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		text = inIssuer.ReplaceAllString(text, "(there are "+settings+")")
		text = intoIssuers.ReplaceAllString(text, "into a list of issuers")
		return nil, fmt.Errorf("%s: %s", path, intoIssuer.ReplaceAllString(text, "into an issuer"))
	}
	return list, nil
}

// The names that errors of the decoder give to types.
var (
	inIssuer    = regexp.MustCompile(`in type \w+\.Issuer`)
	intoIssuers = regexp.MustCompile(`into \[\]\w+\.Issuer`)
	intoIssuer  = regexp.MustCompile(`into \w+\.Issuer`)
)
