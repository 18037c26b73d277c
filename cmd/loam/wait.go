package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"loam/unikernel/registry"
)

func newWait() *cobra.Command {
	return &cobra.Command{
		Use:   "wait NAME...",
		Short: "Wait until guests have ended, and print their exit statuses",
		Args:  atLeast(1, 0, "NAME..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onGuests(cmd, args, func(r *registry.Registry, name string) (string, error) {
				g, err := r.Find(name)
				if err != nil {
					return "", err
				}
				defer g.Close()
				result, err := g.Wait(cmd.Context())
				if err != nil {
					return "", err
				}
				return strconv.Itoa(result.Status), nil
			})
		},
	}
}
