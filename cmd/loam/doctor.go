package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"loam/internal/machine"
	"loam/unikernel"
	"loam/unikernel/overlay"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine offers to Loam, and what to do about what is missing",
		Long: `Doctor tries what Loam can make use of: the toolchain, platforms, links, and
what the network may do without privilege. It changes nothing. To see whether KVM
runs a guest it builds and boots one, once: the answer is remembered. What is marked
"later" is there to see, but this version of Loam does not use it yet.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := unikernel.FindEmulator(cmd.Context())
			if err != nil {
				return err
			}
			found := machine.Probe(machine.ThisHost(machine.Tools{
				KnowsGo: knowsGo,
				Emulator: func() machine.Emulator {
					return machine.Emulator{Version: e.Version, KVM: e.Accelerator == unikernel.KVM, Why: e.Why}
				},
			}))
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(found)
			}
			return printFindings(cmd.OutOrStdout(), found)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array for programs")
	return cmd
}

func printFindings(out io.Writer, found []machine.Finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var todo []machine.Finding
	for _, f := range found {
		state := string(f.State)
		if f.Planned {
			state = "later"
		} else if f.State == machine.Missing {
			todo = append(todo, f)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Area, f.Name, state, f.Detail)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(todo) > 0 {
		fmt.Fprintln(out, "\nWhat to do:")
	}
	for _, f := range todo {
		fmt.Fprintf(out, "  %s: %s\n", f.Name, f.Remedy)
	}
	return nil
}

// knowsGo says what is in the way of building with a toolchain.
func knowsGo(goroot, version string) error {
	_, err := overlay.Generate(goroot, version, overlay.Personality|overlay.Ring0)
	return err
}
