package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"loam/unikernel"
	"loam/unikernel/registry"
)

// stopTime is the default of --time, in seconds.
const stopTime = 10

func newStop() *cobra.Command {
	var seconds int
	cmd := &cobra.Command{
		Use:   "stop [flags] NAME...",
		Short: "End guests",
		Long: `Stop sends SIGTERM to the programs of guests, in the foreground or detached. A program that does not end in time
is killed: its exit status is then 137. The output of a detached guest is kept until "loam rm".
Stop prints the names of the guests. A guest that has ended already is no error.`,
		Example: `  loam stop web
  loam stop -t 0 web db      kill them at once`,
		Args: atLeast(1, 0, "NAME..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if seconds < 0 {
				return &usageError{fmt.Sprintf("--time %d is no time", seconds), "use 0 or more seconds"}
			}
			return onGuests(cmd, guestNames(args), func(r *registry.Registry, name string) (string, error) {
				return name, stopGuest(cmd, r, name, time.Duration(seconds)*time.Second)
			})
		},
	}
	cmd.Flags().IntVarP(&seconds, "time", "t", stopTime, "kill a program that has not ended after `SECONDS`")
	return cmd
}

// stopGuest ends the guest with a name.
func stopGuest(cmd *cobra.Command, r *registry.Registry, name string, patience time.Duration) error {
	g, err := r.Find(name)
	if err != nil {
		return err
	}
	defer g.Close()
	return g.Stop(cmd.Context(), patience, unikernel.KillSignal)
}
