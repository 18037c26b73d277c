package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"loam/unikernel"
)

func newTest() *cobra.Command {
	var f runFlags
	var passed goFlags
	cmd := &cobra.Command{
		Use:   "test [flags] [PACKAGE...] [-args ARGS]",
		Short: "Run go test, with each test binary on Loam",
		Long: `Test is "go test", except that each test binary runs on Loam, with a network of
its own, as under "loam run". Packages are named as for "go test", including
packages of the standard library. Flags of go test may precede or follow them,
with one dash or two. Output and exit status are go test's.

In addition to the flags below, flags of go build and less common flags of go test
are passed on (go help test, go help testflag). Not supported: -race, -msan and
-asan, which need cgo; -c and -o, because such a binary does not run alone. vet is
not run.`,
		Example: `  loam test                              the package of this folder
  loam test -run Fetch -v ./...          every package below it
  loam test -short net net/http          Go's own tests
  loam test --net none -json ./server    only the loopback network; output for programs`,
		RunE: func(cmd *cobra.Command, args []string) error {
			packages := args
			var rest []string
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				packages, rest = args[:dash], args[dash:]
			}
			if _, err := f.options("", nil); err != nil {
				return err
			}
			choice, err := choosePlatform(cmd.Context(), f.platform, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			f.platform = choice.Platform.String()
			exec, err := f.execCommand()
			if err != nil {
				return err
			}
			status, err := unikernel.Test(cmd.Context(), unikernel.TestOptions{
				Packages: packages, Flags: f.flagsOfGo(passed.given), Args: rest, Exec: exec, Platform: choice.Platform, Source: f.source,
			})
			return ended(status, err)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	f.registerShared(cmd, testMemory)
	passed.register("test", cmd.Flags())
	return cmd
}

// execCommand returns the value of go test's flag -exec: the command, with its arguments, that go test starts for each
// test binary.
func (f *runFlags) execCommand() ([]string, error) {
	if f.pcap != "" { // tests run in the folder of their package, so the path must be absolute
		var err error
		if f.pcap, err = filepath.Abs(f.pcap); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return append([]string{self, "exec"}, f.shared()...), nil
}

// flagsOfGo adds -p=1 to the flags of go test if the test binaries need something that only one program at a time can
// use, such as a tap device or a capture file.
func (f *runFlags) flagsOfGo(given []string) []string {
	if f.net != "user" && f.net != "none" || f.pcap != "" {
		return append([]string{"-p=1"}, given...)
	}
	return given
}

// ended returns the error that a command returns after its program has ended with the given status and error.
func ended(status int, err error) error {
	if err == nil && status != 0 {
		return exitError(status)
	}
	return err
}
