package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"loam/unikernel/registry"
)

func newLogs() *cobra.Command {
	var follow bool
	var lines string
	cmd := &cobra.Command{
		Use:   "logs [flags] NAME",
		Short: "Print the output of a detached guest",
		Long: `Logs prints what a detached guest has written to its standard output and standard
error, and what Loam has reported about it, in the order of writing. The last 4 to 8 MiB are kept,
until "loam rm" removes the guest.`,
		Example: `  loam logs web
  loam logs -f --tail 10 web`,
		Args: atLeast(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tail := -1
			if lines != "all" {
				n, err := strconv.ParseUint(lines, 10, 31)
				if err != nil {
					return &usageError{fmt.Sprintf("--tail %s is no number of lines", lines), "write --tail 10, or --tail all"}
				}
				tail = int(n)
			}
			r, err := registry.Open()
			if err != nil {
				return guestError(err)
			}
			defer r.Close()
			g, err := r.Find(args[0])
			if err != nil {
				return guestError(err)
			}
			defer g.Close()
			return guestError(g.Print(cmd.Context(), cmd.OutOrStdout(), registry.Reading{
				Tail: tail, Follow: follow,
				Skipped: func(n int) {
					fmt.Fprintf(cmd.ErrOrStderr(), "loam: the guest writes faster than its output is printed: %d MiB were left out\n", n*registry.PartSize>>20)
				},
			}))
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print further output until the guest ends")
	cmd.Flags().StringVarP(&lines, "tail", "n", "all", "print only the last `N` lines")
	return cmd
}
