package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The reference of the command is made from the command, and this test keeps it
// so. After a change:
//
//	go test ./cmd/loam -update
var update = flag.Bool("update", false, "write docs/loam.md anew")

const reference = "../../docs/loam.md"

func TestReference(t *testing.T) {
	want := writeReference(newRoot())
	if *update {
		if err := os.WriteFile(reference, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(reference); err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/loam.md is not what the command says (%v): go test ./cmd/loam -update", err)
	}
}

// leaves are the commands that do something, and that somebody wrote.
func leaves(parent *cobra.Command) (list []*cobra.Command) {
	for _, cmd := range parent.Commands() {
		switch {
		case !cmd.IsAvailableCommand() || cmd.Name() == "completion" || cmd.Name() == "help":
		case cmd.HasSubCommands():
			if cmd.HasLocalFlags() { // it does something by itself too
				list = append(list, cmd)
			}
			list = append(list, leaves(cmd)...)
		default:
			list = append(list, cmd)
		}
	}
	return list
}

// writeReference prints the help of every command that somebody wrote.
func writeReference(root *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The command loam\n\nMade from the command by `go test ./cmd/loam -update`.\n\n%s.\n", root.Short)
	b.WriteString("What the user gets wrong is told in one line, and the exit status is 2; of a program\nthat does not build the go command tells, and it is 1. A command that SIGINT or SIGTERM ended before its program\nbegan has 130 or 143.\n")
	for _, cmd := range leaves(root) {
		fmt.Fprintf(&b, "\n## %s\n\n", cmd.CommandPath())
		long := cmd.Long
		if long == "" {
			long = cmd.Short + "."
		}
		var usage strings.Builder
		cmd.SetOut(&usage)
		cmd.InitDefaultHelpFlag()
		cmd.Usage()
		fmt.Fprintf(&b, "%s\n\n```\n%s\n```\n", long, strings.TrimSpace(usage.String()))
	}
	b.WriteString("\n## loam completion\n\nPrints a script that completes commands and flags in bash, zsh, fish or PowerShell:\n`loam completion bash --help` says how to load it.\n")
	return b.Bytes()
}
