package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"loam/gen/probe"
	"loam/gen/probe/session"
)

func newGenProbe() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe [flags] CIDR|ADDRESS|FIRST-LAST...",
		Short: "Find the addresses of large ranges that answer, without losing answers",
		Long: `Probe sends a probe to every address of the ranges, and sends it again to addresses that do not
answer: an ICMP echo request, a TCP SYN to ports, a UDP datagram, or an ARP request. The order of the
addresses is pseudo-random; it is computed, so the memory that probe needs does not grow with the
ranges. Answers are authenticated: a host that has not seen the probe cannot forge one.

  loam gen probe 10.0.0.0/16 --allow-private
  loam gen probe 10.0.0.0/16 --allow-private --tcp 22,80,443 --rate 10k -O csv -o open.csv
  loam gen probe 192.168.1.0/24 --allow-private --arp
  loam gen probe --targets resolvers.txt --udp 53 --payload dns --resume run.state -o answers.json

Without --rate, probe sends at the highest rate at which this machine loses no answers. To
public addresses, it sends 1000 probes a second; more than that needs --public. Networks that
are private, reserved or for documentation are left out unless they are allowed.

With --resume FILE, the same command continues a run that was interrupted, for example by
Ctrl-C or a power failure.

The targets must be behind one router, or all on the link of one interface. On a link, probe
first resolves the Ethernet addresses of all targets, and then probes the targets that have one.
--arp only resolves.

Answers arrive through memory that is shared with the kernel (--method tc, xdp or ring). With
tc and xdp, the kernel does not see the answers while the run lasts. Answers are echo replies
with the identifier of the run, TCP and UDP to the source ports, and ICMP errors about probes.
Probe resets the connections to open ports that the kernel does not reset.

Results go to standard output as JSON lines or CSV, progress to standard error.
The command drops root's privileges after set-up. However it ends, the interface is
unchanged afterwards.`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.register(cmd)
	return cmd
}

// run executes the command.
func (f *probeFlags) run(cmd *cobra.Command, args []string) error {
	o, err := f.options(args)
	if err != nil {
		return err
	}
	errs := cmd.ErrOrStderr()
	o.Output = cmd.OutOrStdout()
	o.Note = func(s string) { fmt.Fprintln(errs, "loam:", s) }
	if !f.quiet {
		o.Probe.Progress = func(s probe.Status) { fmt.Fprintln(errs, progress(s)) }
	}
	metadata, err := f.openMetadata()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if f.time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.time)
		defer cancel()
	}
	sum, err := session.Run(ctx, o)
	var refusal *session.Refusal
	if errors.As(err, &refusal) {
		return &usageError{refusal.Wrong, refusal.Do}
	}
	if !f.quiet && sum.Asked+sum.Absent > 0 {
		fmt.Fprint(errs, sum.Text())
	}
	err = errors.Join(err, writeMetadata(metadata, sum))
	return errors.Join(err, f.interrupted(ctx, errs, sum))
}

// statusInterrupted is the exit status that shells report for a program ended by Ctrl-C.
const statusInterrupted = 130

// interrupted prints the command that resumes an interrupted run, and returns the exit status as an error.
func (f *probeFlags) interrupted(ctx context.Context, errs io.Writer, sum probe.Summary) error {
	if ctx.Err() == nil || sum.Finished {
		return nil
	}
	how, status := "interrupted", error(exitError(statusInterrupted))
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		how, status = "the time is over", nil
	}
	if f.session.StateFile != "" {
		fmt.Fprintf(errs, "loam: %s; the same command goes on\n", how)
	} else {
		fmt.Fprintf(errs, "loam: %s; with --resume FILE a run can go on\n", how)
	}
	return status
}

// progress returns one line that describes the state of a run.
func progress(s probe.Status) string {
	doing := fmt.Sprintf("pass %d, %5.1f %%", s.Pass+1, 100*s.Done)
	if s.Waiting {
		doing = "waiting for late answers"
	}
	return fmt.Sprintf("%5.0f s  %s  %d sent, %.0f a second  %d found", s.Elapsed.Seconds(), doing, s.Sent, s.Rate, s.Found)
}

// openMetadata opens the file for the summary while the process still has its privileges. Without --metadata it
// returns nil.
func (f *probeFlags) openMetadata() (*os.File, error) {
	if f.metadata == "" {
		return nil, nil
	}
	file, err := os.Create(f.metadata)
	if err != nil {
		return nil, &usageError{"--metadata " + err.Error(), "name a file that can be written"}
	}
	return file, nil
}

func writeMetadata(file *os.File, sum probe.Summary) error {
	if file == nil {
		return nil
	}
	return errors.Join(json.NewEncoder(file).Encode(sum), file.Close())
}
