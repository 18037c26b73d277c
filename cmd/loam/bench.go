package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"loam/unikernel/cost"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure Loam on this machine, compared with Linux",
		Args:  knownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchSyscall())
	return cmd
}

func newBenchSyscall() *cobra.Command {
	var asJSON bool
	var rounds int
	cmd := &cobra.Command{
		Use:   "syscall",
		Short: "Measure the cost of system calls",
		Long: `Syscall builds a small program and runs it on Loam and on Linux, in turns. It
prints the time of a few system calls on both, in nanoseconds: the minimum of all
rounds. It also prints the time from the call of a function of package syscall
until Loam begins to serve the system call.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rounds < 1 {
				return &usageError{fmt.Sprintf("--rounds %d measures nothing", rounds), "use 1 or more"}
			}
			r, err := cost.Measure(cmd.Context(), cost.Options{Rounds: rounds})
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(r)
			}
			return printCosts(cmd.OutOrStdout(), r)
		},
	}
	cmd.Flags().IntVar(&rounds, "rounds", 5, "number of runs on each of the two systems")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object for programs")
	return cmd
}

// printCosts writes a table of the costs of system calls, in nanoseconds.
func printCosts(out io.Writer, r *cost.Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "call\tLinux, ns\tLoam, ns\tLinux/Loam\t")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t  %s\n", row.Call, row.Linux, row.Loam, row.Ratio, row.What)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nThe hook costs %.1f ns before a call does any work.\n", r.Hook)
	return err
}
