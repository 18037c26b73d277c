package main

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"loam/unikernel/registry"
)

func newRm() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm [flags] NAME...",
		Short: "Remove guests that have ended, with their output",
		Args:  atLeast(1, 0, "NAME..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onGuests(cmd, guestNames(args), func(r *registry.Registry, name string) (string, error) {
				return name, removeGuest(cmd, r, name, force)
			})
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "kill guests that run")
	return cmd
}

// removeGuest removes a guest. If force is set, it kills the guest first. A guest in the foreground, or one that has not
// started, removes itself at its end.
func removeGuest(cmd *cobra.Command, r *registry.Registry, name string, force bool) error {
	if !force {
		return r.Remove(cmd.Context(), name)
	}
	if err := stopGuest(cmd, r, name, 0); err != nil {
		return err
	}
	if err := r.Remove(cmd.Context(), name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
