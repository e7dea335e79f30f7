package cli

import (
	"errors"
	"io"

	"github.com/alecthomas/kong"
)

// Config has the commands that show S, the settings of the command serve.
type Config[S any, P checked[S]] struct {
	Print printConfig[S, P] `cmd:"" help:"Print the settings that serve would start with, and where each comes from; takes the flags of serve."`
	List  ConfigList[S]     `cmd:"" help:"Print a table of all settings of serve in Markdown."`
}

// checked is a pointer to settings. Check returns an error if they contradict each other.
type checked[S any] interface {
	*S
	Check() error
}

type printConfig[S any, P checked[S]] struct {
	Settings S `embed:""`
}

// Run prints the settings. It returns an error if they contradict each other.
func (c *printConfig[S, P]) Run(kctx *kong.Context) error {
	text, err := Settings(kctx)
	if err != nil {
		return err
	}
	_, err = io.WriteString(kctx.Stdout, text)
	return errors.Join(err, P(&c.Settings).Check())
}

// ConfigList is the command that prints a table of the settings S.
type ConfigList[S any] struct {
	Settings S `embed:""`
}

// Run prints the table.
func (*ConfigList[S]) Run(kctx *kong.Context) error { return listSettings(kctx) }
