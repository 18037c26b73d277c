package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"loam/unikernel/registry"
)

func newPs() *cobra.Command {
	var all, asJSON, quiet bool
	cmd := &cobra.Command{
		Use:   "ps [flags]",
		Short: "List running guests",
		Long: `Ps lists the guests of this user that "loam run" runs, in the foreground and detached.
With -a, it also lists detached guests that have ended, with their exit status, until
"loam rm" removes them. The state "lost" means that the loam command of a guest was
killed: the guest ended with it, and its exit status is unknown. A signal to the process
PID is forwarded to the program.`,
		Example: `  loam ps
  loam ps -a --json
  loam stop $(loam ps -q)`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := registry.Open()
			if err != nil {
				return guestError(err)
			}
			defer r.Close()
			list, unread := r.List()
			shown := []registry.Guest{}
			for _, g := range list {
				if all || g.Running() {
					shown = append(shown, g)
				}
			}
			switch {
			case asJSON:
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				err = enc.Encode(shown)
			case quiet:
				for _, g := range shown {
					fmt.Fprintln(cmd.OutOrStdout(), g.Name)
				}
			default:
				err = printGuests(cmd.OutOrStdout(), shown, time.Now())
			}
			return errors.Join(err, unread)
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list guests that have ended, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array for programs")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only names")
	cmd.MarkFlagsMutuallyExclusive("json", "quiet")
	return cmd
}

// printGuests writes a table of guests.
func printGuests(out io.Writer, list []registry.Guest, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tPROGRAM\tPLATFORM\tPID\tPORTS\tSTATUS")
	for _, g := range list {
		var ports []string
		for _, p := range g.Ports {
			ports = append(ports, fmt.Sprintf("%s->%d/%s", p.Host, p.Guest, p.Protocol))
		}
		pid := "-"
		if g.Running() {
			pid = fmt.Sprint(g.PID)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
			g.Name, printable(g.Program), printable(g.Platform), pid, orDash(printable(strings.Join(ports, ", "))), status(g, now))
	}
	return w.Flush()
}

// orDash returns s, or a dash if s is empty.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// printable replaces characters that would change the table or the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// status describes the state of a guest.
func status(g registry.Guest, now time.Time) string {
	switch g.State {
	case registry.Running:
		return "up " + span(now.Sub(g.Started))
	case registry.Exited:
		return fmt.Sprintf("exited (%d) %s ago", g.Result.Status, span(now.Sub(g.Result.Ended)))
	}
	return string(g.State)
}

// span describes a duration by one number.
func span(d time.Duration) string {
	n, unit := int(max(d, 0)/time.Second), "second"
	for _, u := range []struct {
		from, seconds int
		name          string
	}{{60, 60, "minute"}, {2 * 3600, 3600, "hour"}, {48 * 3600, 24 * 3600, "day"}} {
		if seconds := int(max(d, 0) / time.Second); seconds >= u.from {
			n, unit = seconds/u.seconds, u.name
		}
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}
