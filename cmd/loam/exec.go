package main

import (
	"github.com/spf13/cobra"

	"loam/unikernel"
)

// newExec returns the hidden command with which go test starts each test binary under "loam test". It is not meant for
// users: a program that was not built for Loam would run on Linux.
func newExec() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:    "exec [flags] PROGRAM [ARGS]",
		Short:  "Run a program that has been built for Loam",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(args[0], args[1:])
			if err != nil {
				return err
			}
			if err := f.withPlatform(cmd.Context(), &o, cmd.ErrOrStderr()); err != nil {
				return err
			}
			return ended(unikernel.RunProgram(args[0], o))
		},
	}
	f.registerShared(cmd, testMemory)
	cmd.Flags().SetInterspersed(false)
	return cmd
}
