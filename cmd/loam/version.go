package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"loam/unikernel/overlay"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of Loam and the supported releases of Go",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\nruns programs built with %s\ntried with %s\n",
				describe(info), overlay.Known(), strings.Join(overlay.Tried(), ", "))
			return err
		},
	}
}

// describe returns the line that identifies a build of Loam. A build outside a git checkout, or with
// -buildvcs=false, has no commit.
func describe(info *debug.BuildInfo) string {
	version, commit, modified := info.Main.Version, "unknown", ""
	if version == "" {
		version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				modified = ", modified"
			}
		}
	}
	return fmt.Sprintf("loam %s, commit %s%s, built with %s", version, commit, modified, info.GoVersion)
}
