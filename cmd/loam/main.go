// Command loam runs Go programs on Loam, a kernel written in Go.
//
//	loam run -p 8080:80 ./server    an unmodified program, on its own network
//	loam build -o web.elf ./server  a file that QEMU boots
//	loam test -run Fetch ./...      go test, and the tests run on Loam
//	loam doctor                     what this machine offers, and what is missing
//	loam bench syscall              what a system call costs, on Loam and on Linux
//	loam gen --dev eth0 --dst IP    packets, sent and measured
//	loam version                    what this is, and which Go it knows
//
// The command is thin: it turns flags into the options of packages, and checks
// them. Each subcommand is a file of that name; this one holds what they share.
// What users get wrong is told in one line, what is wrong and what to do, and
// ends with status 2. What the go command says of a program that does not build is
// told as it is.
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

// Exit statuses. A program that ran to its end gives its own, and a signal that ended the command
// before 128 and its number.
const (
	statusFailed = 1 // something went wrong that the user did not do
	statusUsage  = 2 // the command cannot be carried out as it was given
)

func main() {
	ctx, stop := untilInterrupted()
	status := execute(ctx, newRoot(), goStyle(os.Args[1:]))
	stop()
	os.Exit(status)
}

// usageError is a mistake of the user: what is wrong, and what to do, unless the
// first says both.
type usageError struct{ wrong, do string }

func (e *usageError) Error() string {
	if e.do == "" {
		return e.wrong
	}
	return e.wrong + "; " + e.do
}

// exitError carries the status of a program that has said itself what it had to
// say.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// execute runs the command line and returns the exit status.
func execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var usage *usageError
	var exit exitError
	var program *unikernel.Error
	var ended interruption
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &ended):
		fmt.Fprintln(root.ErrOrStderr(), "loam:", ended)
		return ended.status()
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		fmt.Fprintln(root.ErrOrStderr(), "loam:", oneLine(err))
		return statusUsage
	case errors.As(err, &program):
		return failed(root.ErrOrStderr(), program)
	}
	fmt.Fprintln(root.ErrOrStderr(), "loam:", oneLine(err))
	return statusFailed
}

// failed tells why a program does not run, and returns the exit status. Where the go command has
// failed it has said what is wrong, and its status is 1.
func failed(w io.Writer, e *unikernel.Error) int {
	if e.Output == "" {
		fmt.Fprintln(w, "loam:", oneLine(e))
		return statusUsage
	}
	fmt.Fprintln(w, strings.TrimRight(e.Output, "\n"))
	if e.Next != "" {
		fmt.Fprintln(w, "loam:", oneLine(e))
	}
	return statusFailed
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "loam",
		Short:         "Run Go programs on Loam, a kernel written in Go",
		SilenceErrors: true, // execute prints them, in one line
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(newRun(), newBuild(), newTest(), newExec(), newDoctor(), newBench(), newGenCommand(), newVersion())
	return root
}

// wrongFlag is about a flag that is not known, or lacks its value. Behind a program
// it is probably the program's.
func wrongFlag(cmd *cobra.Command, err error) error {
	do := "see " + cmd.CommandPath() + " --help"
	if program := cmd.Flags().Arg(0); cmd.Name() == "run" && program != "" {
		do = "put the program's arguments behind --: loam run " + program + " -- ARGS"
	}
	return &usageError{err.Error(), do}
}

// knownCommand refuses arguments of a command that only has others: they are
// misspelt commands.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2 // letters that may be wrong
	do := "see " + cmd.CommandPath() + " --help"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		do = "did you mean " + cmd.CommandPath() + " " + near[0] + "?"
	}
	return &usageError{fmt.Sprintf("there is no command %q", args[0]), do}
}

// noArguments is for commands that take none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Sprintf("%s takes no argument, and got %q", cmd.CommandPath(), args[0]), "leave it out"}
	}
	return nil
}
