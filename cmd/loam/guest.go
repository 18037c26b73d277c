package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"loam/unikernel"
	"loam/unikernel/detach"
	"loam/unikernel/registry"
	"loam/usernet"
)

// This file connects "loam run" to the list of guests (package registry) and to the background (package detach).

// checkGuest checks --name and --detach.
func (f *runFlags) checkGuest() error {
	if f.named {
		if err := registry.CheckName(f.name); err != nil {
			return guestError(err)
		}
	}
	if f.detach && f.tty.TerminalUse == unikernel.OwnTerminal {
		return &usageError{"-t has no use with -d, because a detached guest has no terminal", "leave out one of them"}
	}
	return nil
}

// guestError makes errors of package registry mistakes of the user.
func guestError(err error) error {
	var e *registry.Error
	if errors.As(err, &e) {
		return &usageError{e.What, e.Next}
	}
	return err
}

// startDetached starts this command again in the background, and prints the name of the guest.
func startDetached(ctx context.Context, out io.Writer) error {
	name, status, err := detach.Start(ctx, func(ctx context.Context) os.Signal {
		var ended interruption
		if errors.As(context.Cause(ctx), &ended) {
			return ended.signal()
		}
		return os.Interrupt
	})
	if err != nil {
		return err
	}
	if status != 0 {
		return exitError(status)
	}
	_, err = fmt.Fprintln(out, name)
	return err
}

// runListed runs a program as a guest in the list. background is not nil if this process was started by startDetached.
func (f *runFlags) runListed(cmd *cobra.Command, o unikernel.Options, program string, background *detach.Process) error {
	r, err := registry.Open()
	if err != nil {
		return f.runUnlisted(cmd, o, background, err)
	}
	defer r.Close()
	if err := unexposed(r, f.volumes, o.Root); err != nil {
		return err
	}
	entry, err := r.Create(cmd.Context(), registry.Record{
		Name: f.name, Program: program, Platform: o.Target.Platform.String(),
		Ports: ports(o.Network.Forwards), Detached: background != nil,
	})
	if err != nil {
		var refused *registry.Error
		if errors.As(err, &refused) || cmd.Context().Err() != nil {
			return guestError(err)
		}
		return f.runUnlisted(cmd, o, background, err)
	}
	if background != nil {
		return runInBackground(cmd, o, entry, background)
	}
	o.Started = func() {
		ignoreKillSignal()
		if err := entry.Start(); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "loam: loam ps shows this guest as starting: %v\n", err)
		}
	}
	status, err := unikernel.Run(cmd.Context(), o)
	if eerr := entry.End(result(cmd.Context(), status, err)); eerr != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "loam: the entry of this guest stays in loam ps -a: %v\n", eerr)
	}
	return ended(status, err)
}

// ignoreKillSignal makes this process ignore unikernel.KillSignal when its program has ended. Until then, package
// unikernel handles the signal. Afterwards the signal would end this process while the gateway delivers data, and before
// the result is recorded.
func ignoreKillSignal() { signal.Notify(make(chan os.Signal, 1), unikernel.KillSignal) }

// result returns what the list records about the end of a guest: the exit status of this command, and the text of err.
func result(ctx context.Context, status int, err error) (int, string) {
	if err == nil {
		return status, ""
	}
	return errorStatus(ctx, err), oneLine(err)
}

// runUnlisted runs a program that cannot be in the list because of an error. This is possible only for a guest in the
// foreground that needs no name.
func (f *runFlags) runUnlisted(cmd *cobra.Command, o unikernel.Options, background *detach.Process, err error) error {
	if f.named || background != nil {
		return guestError(err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "loam: this guest is not in the list of loam ps: %s\n", oneLine(err))
	return ended(unikernel.Run(cmd.Context(), o))
}

// runInBackground runs a program as a detached guest. If the program does not start, all output goes to the caller, and
// nothing is left. Later errors are part of the stored output.
func runInBackground(cmd *cobra.Command, o unikernel.Options, entry *registry.Entry, p *detach.Process) error {
	output := entry.Output()
	if err := p.Divert(output); err != nil {
		return errors.Join(err, entry.End(statusFailed, ""))
	}
	cmd.Root().SetErr(p.Errors())
	started := false
	var failed error // the error of the start
	o.Started = func() {
		ignoreKillSignal()
		if failed = entry.Start(); failed != nil {
			syscall.Kill(os.Getpid(), unikernel.KillSignal)
			return
		}
		started = true
		if err := p.Started(entry.Name()); err != nil {
			fmt.Fprintln(os.Stderr, "loam:", oneLine(err))
			endThis()
		}
	}
	status, err := unikernel.Run(cmd.Context(), o)
	if err == nil && !started && failed == nil { // the guest has ended before it reported that it runs
		o.Started()
	}
	if failed != nil {
		err = fmt.Errorf("the start of the guest cannot be recorded: %w", failed)
	}
	err = errors.Join(err, p.Finish())
	status, reason := result(cmd.Context(), status, err)
	if started && err != nil {
		fmt.Fprintln(output, "loam:", reason)
	}
	output.Close()
	if !started {
		entry.CopyOutput(p.Errors())
	}
	eerr := entry.End(status, reason)
	if err != nil {
		return err
	}
	return ended(status, eerr)
}

// unexposed returns an error if a volume or the root folder would give the guest access to the list of guests.
func unexposed(r *registry.Registry, volumes []string, root string) error {
	parsed, err := parseVolumes(volumes)
	if err != nil {
		return err
	}
	for _, v := range parsed {
		if r.Exposes(v.host) {
			return &usageError{fmt.Sprintf("-v %s contains the folder of running guests (or lies in it), to which no guest has access", v.host), "give a folder inside it, or set XDG_RUNTIME_DIR to another folder of your own"}
		}
	}
	if root != "" && r.Exposes(root) {
		return &usageError{fmt.Sprintf("--root %s contains the folder of running guests, to which no guest has access", root), "give another folder, or set XDG_RUNTIME_DIR to another folder of your own"}
	}
	return nil
}

// ports returns published ports as the list shows them.
func ports(forwards []usernet.Forward) []registry.Port {
	all := []registry.Port{}
	for _, f := range forwards {
		host := f.Host.String()
		if !f.Host.Addr().IsValid() {
			host = strconv.Itoa(int(f.Host.Port()))
		}
		all = append(all, registry.Port{Host: host, Guest: f.Guest.Port(), Protocol: f.Proto})
	}
	return all
}

// onGuests calls f for each of the named guests, at the same time, and prints their errors and their results in the order
// of the names.
func onGuests(cmd *cobra.Command, names []string, f func(r *registry.Registry, name string) (result string, err error)) error {
	r, err := registry.Open()
	if err != nil {
		return guestError(err)
	}
	defer r.Close()
	type answer struct {
		result string
		err    error
	}
	var answers []chan answer
	for _, name := range names {
		c := make(chan answer, 1) // sent once by the goroutine below
		answers = append(answers, c)
		go func() {
			result, err := f(r, name)
			c <- answer{result, err}
		}()
	}
	var errs []error
	for _, c := range answers {
		a := <-c
		if a.err != nil {
			errs = append(errs, guestError(a.err))
			continue
		}
		fmt.Fprintln(cmd.OutOrStdout(), a.result)
	}
	if len(errs) == 0 {
		return nil
	}
	last := len(errs) - 1
	for _, err := range errs[:last] {
		fmt.Fprintln(cmd.ErrOrStderr(), "loam:", oneLine(err))
	}
	return errs[last]
}

// guestNames returns names without repetitions.
func guestNames(args []string) []string {
	var names []string
	for _, name := range args {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// registerGuest registers the flags that concern the list of guests (guest.go).
func (f *runFlags) registerGuest(cmd *cobra.Command) {
	cmd.Flags().Var(&guestName{f}, "name", "give the guest a `NAME`, by which loam ps, stop, logs, wait and rm know it (default: the program's, with a random number)")
	cmd.Flags().BoolVarP(&f.detach, "detach", "d", false, "run the guest in the background: print its name when it has started, and store its output for loam logs; its standard input is empty")
}

// guestName is the flag --name. It distinguishes an empty name from none.
type guestName struct{ *runFlags }

// String implements pflag.Value.
func (n *guestName) String() string {
	if n.runFlags == nil {
		return ""
	}
	return n.name
}

// Set implements pflag.Value.
func (n *guestName) Set(s string) error {
	n.name, n.named = s, true
	return nil
}

// Type implements pflag.Value.
func (n *guestName) Type() string { return "string" }
