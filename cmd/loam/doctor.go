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
	"loam/unikernel/sandbox"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine supports, and how to add what is missing",
		Long: `Doctor checks the parts of this machine that Loam can use: the toolchain,
platforms, links, and what the network allows without privilege. It changes
nothing. To check KVM it builds and boots a guest once and remembers the result.
Parts marked "later" exist, but this version of Loam does not use them.`,
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
				Layers: layers,
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

// printFindings writes a table of the findings. For each missing part, it adds a line that says how to provide it.
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

// knowsGo returns an error if Loam cannot build programs with the given toolchain.
func knowsGo(goroot, version string) error {
	_, err := overlay.Generate(goroot, version, overlay.Personality|overlay.Ring0)
	return err
}

// layers reports which layers of the process sandbox work on this machine.
func layers() []machine.Layer {
	l, err := sandbox.Probe()
	if err != nil {
		return []machine.Layer{{Name: "filter", Detail: err.Error()}}
	}
	spaces := "user, mount, PID, network and IPC namespaces"
	all := l.User && l.PID && l.Network && l.IPC
	if l.PID && l.Network && l.IPC && !l.User {
		all, spaces = true, "mount, PID, network and IPC namespaces of root's"
	}
	if !all {
		spaces = "a process gets none: " + l.Why
	}
	files := "the root of a process is empty"
	if !l.Mount {
		files = "the root of a process is the host's: only the filter and Landlock shut it"
	}
	landlock := fmt.Sprintf("Landlock, version %d of its ABI", l.Landlock)
	if l.Landlock == 0 {
		landlock = "the kernel has no Landlock"
	}
	return []machine.Layer{
		{Name: "filter", Holds: true, Detail: "system calls are filtered before a program's first instruction"},
		{Name: "user", Holds: l.Unprivileged, Detail: "a process has no privileges"},
		{Name: "namespaces", Holds: all, Detail: spaces},
		{Name: "files", Holds: l.Mount, Detail: files},
		{Name: "landlock", Holds: l.Landlock > 0, Detail: landlock},
	}
}
