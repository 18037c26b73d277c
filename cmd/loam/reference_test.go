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

// The reference of the command is generated from the command, and this test checks that it is current. After a
// change run:
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

// leaves returns the commands that users can run, except for those that cobra generates.
func leaves(parent *cobra.Command) (list []*cobra.Command) {
	for _, cmd := range parent.Commands() {
		switch {
		case !cmd.IsAvailableCommand() || cmd.Name() == "completion" || cmd.Name() == "help":
		case cmd.HasSubCommands():
			if cmd.HasLocalFlags() { // a command with subcommands that can also be run without one
				list = append(list, cmd)
			}
			list = append(list, leaves(cmd)...)
		default:
			list = append(list, cmd)
		}
	}
	return list
}

// writeReference prints the help of the commands that leaves returns.
func writeReference(root *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The command loam\n\nThis page is made from the command's help texts by `go test ./cmd/loam -update`.\n\n%s.\n", root.Short)
	b.WriteString("A mistake of the user is reported in one line, with exit status 2. If a program does not build, the messages are\nthe go command's and the status is 1. A command that SIGINT or SIGTERM ended before its program began has status\n130 or 143.\n")
	for _, cmd := range leaves(root) {
		fmt.Fprintf(&b, "\n## %s\n\n", cmd.CommandPath())
		long := cmd.Long
		if long == "" {
			long = cmd.Short + "."
		}
		long = strings.ReplaceAll(long, "\n  ", "\n    ") // Markdown shows lines with four spaces as they are
		var usage strings.Builder
		cmd.SetOut(&usage)
		cmd.InitDefaultHelpFlag()
		cmd.Usage()
		fmt.Fprintf(&b, "%s\n\n```\n%s\n```\n", long, strings.TrimSpace(usage.String()))
	}
	b.WriteString("\n## loam completion\n\nPrints a script that completes commands and flags in bash, zsh, fish or PowerShell:\n`loam completion bash --help` says how to load it.\n")
	return b.Bytes()
}
