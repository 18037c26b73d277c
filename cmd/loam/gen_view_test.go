package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"loam/gen/show"
)

// If --tui is given without a terminal, the command fails before the run starts.
func TestLiveViewWithoutATerminal(t *testing.T) {
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out strings.Builder
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetIn(in)
	cmd.SetOut(&out)
	err = (&viewFlags{tui: true}).watch(cmd, func(context.Context, show.View) (show.Result, error) {
		t.Error("the work has begun")
		return show.NewResult(nil, nil), nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "--tui has no terminal to show it on: ") || out.Len() > 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
}
