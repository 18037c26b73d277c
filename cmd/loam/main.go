// Command loam runs Go programs on Loam, a kernel written in Go.
//
//	loam run -p 8080:80 ./server    run an unmodified program on its own network
//	loam ps                         list running guests; logs, stop, wait and rm take their names
//	loam build -o web.elf ./server  build a file that QEMU boots
//	loam test -run Fetch ./...      run go test, with the tests on Loam
//	loam doctor                     show what this machine supports and what is missing
//	loam bench syscall              measure the cost of a system call on Loam and on Linux
//	loam disk ls data.img           look into an image of a disk
//	loam gen --dev eth0 --dst IP    send and measure packets
//	loam version                    show the version of Loam and the supported versions of Go
//
// The command only checks flags and converts them to the options of packages. Each subcommand has a file with its name;
// this file contains the common parts. A mistake of the user is reported in one line that states the problem and its
// solution, with exit status 2. If a program does not build, the messages of the go command are printed unchanged.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"loam/unikernel"
)

// Exit statuses. If a program has run to its end, the command returns the program's status. If a signal ended the
// command earlier, the status is 128 plus the signal number.
const (
	statusFailed = 1 // an error that is not the user's mistake
	statusUsage  = 2 // the command line is invalid
)

func main() {
	ctx, stop := untilInterrupted()
	status := execute(ctx, newRoot(), goStyle(os.Args[1:]))
	stop()
	os.Exit(status)
}

// usageError is a mistake of the user. wrong states the problem and do the solution; do is empty if wrong contains
// both.
type usageError struct{ wrong, do string }

func (e *usageError) Error() string {
	if e.do == "" {
		return e.wrong
	}
	return e.wrong + "; " + e.do
}

// exitError is the exit status of a program that has already printed its own messages.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// execute runs the command line and returns the exit status.
func execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var usage *usageError
	var exit exitError
	var program *unikernel.Error
	ended, interrupted := interruptionOf(ctx, err)
	switch {
	case interrupted:
		fmt.Fprintln(root.ErrOrStderr(), "loam:", ended)
	case errors.As(err, &exit):
	case !errors.As(err, &usage) && errors.As(err, &program):
		printFailure(root.ErrOrStderr(), program)
	default:
		fmt.Fprintln(root.ErrOrStderr(), "loam:", oneLine(err))
	}
	return errorStatus(ctx, err)
}

// errorStatus returns the exit status for an error of a command. It is 1 if the go command has failed.
func errorStatus(ctx context.Context, err error) int {
	var usage *usageError
	var exit exitError
	var program *unikernel.Error
	ended, interrupted := interruptionOf(ctx, err)
	switch {
	case interrupted:
		return ended.status()
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage), errors.As(err, &program) && program.Output == "":
		return statusUsage
	}
	return statusFailed
}

// printFailure prints why a program cannot run. If the go command has failed, its own output is printed.
func printFailure(w io.Writer, e *unikernel.Error) {
	if e.Output != "" {
		fmt.Fprintln(w, strings.TrimRight(e.Output, "\n"))
	}
	if e.Output == "" || e.Next != "" {
		fmt.Fprintln(w, "loam:", oneLine(e))
	}
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "loam",
		Short:         "Run Go programs on Loam, a kernel written in Go",
		SilenceErrors: true, // execute prints errors in one line
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(newRun(), newPs(), newLogs(), newStop(), newRm(), newWait(), newBuild(), newTest(), newExec(), newDoctor(), newBench(), newDisk(), newGenCommand(), newVersion())
	return root
}

// wrongFlag returns the error for a flag that is unknown or lacks its value. If the flag follows the name of the
// program, the user probably meant it for the program, and the message says so.
func wrongFlag(cmd *cobra.Command, err error) error {
	if wrong, ok := wrongValue(cmd, err); ok {
		return wrong
	}
	do := "see " + cmd.CommandPath() + " --help"
	if program := cmd.Flags().Arg(0); cmd.Name() == "run" && program != "" {
		do = "put the program's arguments behind --: loam run " + program + " -- ARGS"
	}
	if cmd.Name() == "run" && strings.HasPrefix(err.Error(), "unknown shorthand flag: 'i'") && cmd.Flags().Arg(0) == "" {
		do = "leave it out: a program has the standard input of loam run, and with -d an empty one"
	}
	return &usageError{err.Error(), do}
}

// knownCommand rejects arguments of a command that only has subcommands, since such an argument is a misspelt
// subcommand.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2 // letters by which the name of a suggested command may differ
	do := "see " + cmd.CommandPath() + " --help"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		do = "did you mean " + cmd.CommandPath() + " " + near[0] + "?"
	}
	return &usageError{fmt.Sprintf("there is no command %q", args[0]), do}
}

// noArguments rejects all arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Sprintf("%s takes no argument, and got %q", cmd.CommandPath(), args[0]), "leave it out"}
	}
	return nil
}
