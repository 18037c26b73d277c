package main

import "github.com/spf13/cobra"

// newGenCommand is the packet engine. Its subcommands are files named gen_*.go,
// each with a function that returns the command.
func newGenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Send packets in every way that Linux has, and measure what arrives",
		Long: `Gen is a packet engine: it sends by any method, from net.Dial to AF_XDP, and
counts what arrives. Most of it takes root, or CAP_NET_RAW and CAP_NET_ADMIN.`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	return cmd
}
