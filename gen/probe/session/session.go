//go:build linux

// Package session prepares and runs a probe run (package probe) on this machine. It finds the interface and the router
// through which the targets are reached, and removes targets that must not be probed. It opens the senders, the
// receivers and the files, gives up the privileges of the process, and then runs package probe.
//
// Reading order: session.go, target.go (the targets), neighbour.go (targets on the same link), station.go (senders and
// receivers), files.go (results and state).
package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"

	"loam/gen/guard"
	"loam/gen/probe"
	"loam/gen/probe/target"
	"loam/internal/siphash"
)

// Options are the options of a run. If a field is zero, Run determines its value, or the default of package probe
// applies.
type Options struct {
	// Probe is the configuration for package probe. Run sets Addresses, ID, Key, Reset and the functions. It sets
	// Source, SourceMAC, NextHopMAC, LocalPorts and Seed if they are zero.
	Probe probe.Config

	Targets, Exclude []target.Range
	// AllowPrivate allows targets in private networks. AllowReserved allows all addresses that IANA has reserved,
	// including private networks.
	AllowPrivate, AllowReserved bool
	// Public allows rates above guard.ModestRate to public addresses.
	Public bool

	Interface string // "": the interface of the kernel's route to the first target
	Method    string // tc, xdp, ring or packet; default: see choose

	Filter probe.Filter // results that the filter does not match are not written; the zero Filter matches all
	Format probe.Format
	Fields []probe.Field
	// Output is the stream to which results are written, unless OutputFile is set.
	Output     io.Writer
	OutputFile string
	// StateFile is the file in which the progress of the run is saved, so that a later run can resume it. It requires
	// an OutputFile.
	StateFile string

	KeepPrivileges bool
	local          bool // the targets are on the same link as Interface: see route

	// Note is called with a line of text about each fact that the user should know, such as a choice that Run has made.
	Note func(string)
}

// Refusal is an error in the user's request. Wrong states the problem and Do the solution.
type Refusal struct{ Wrong, Do string }

// Error implements error.
func (r *Refusal) Error() string { return r.Wrong + "; " + r.Do }

// defaultPorts are the default source ports of SYN and UDP probes. They are above the ports that Linux assigns to its
// own connections (ip_local_port_range). In that range, a connection of Linux and a probe could have the same port, and
// each could get the packets of the other.
var defaultPorts = probe.Ports{First: 61000, Last: 65535}

// Run runs a probe. The summary is empty if the run did not start.
func Run(ctx context.Context, o Options) (sum probe.Summary, err error) {
	c := o.Probe
	if c.Addresses, err = o.addresses(); err != nil {
		return sum, err
	}
	if err := o.checkRate(&c); err != nil {
		return sum, err
	}
	if err := o.route(&c); err != nil {
		return sum, err
	}
	fillIn(&c)
	c.All = c.All || o.Filter.Answers
	files, err := o.openFiles(&c)
	if err != nil {
		return sum, err
	}
	if o.local && c.Kind != probe.Neighbour {
		if c.Neighbours, err = o.askNeighbours(ctx, &c); err != nil {
			return sum, errors.Join(err, files.close())
		}
	}
	s, err := o.openStation(&c)
	if err != nil {
		return sum, errors.Join(err, files.close())
	}
	if !o.KeepPrivileges {
		err = guard.Drop()
	}
	if err == nil {
		// Each lane spends most of its time in system calls of a fraction of a millisecond. During a call the runtime
		// may give the lane's P (its right to run Go code) to another goroutine. If there is no spare P when the call
		// returns, the lane must wait for one. This costs a quarter of the rate.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), max(len(s.senders), len(s.receivers))+2)))
		c.Losses, c.Record, c.Mark = s.losses, files.record, files.mark
		sum, err = probe.Run(ctx, &c, s.senders, s.receivers)
	}
	return sum, errors.Join(err, files.finish(&sum), s.close())
}

// fillIn sets those values of c that the user has not given.
func fillIn(c *probe.Config) {
	if c.Kind.HasPorts() && c.LocalPorts == (probe.Ports{}) {
		c.LocalPorts = defaultPorts
	}
	var b [26]byte
	rand.Read(b[:]) // never returns an error
	c.Key = siphash.Key{K0: binary.NativeEndian.Uint64(b[:]), K1: binary.NativeEndian.Uint64(b[8:])}
	c.ID = binary.NativeEndian.Uint16(b[16:])
	if c.Seed == 0 {
		c.Seed = binary.NativeEndian.Uint64(b[18:])
	}
}

// checkRate returns an error if the rate to public addresses is high and Public is not set.
func (o *Options) checkRate(c *probe.Config) error {
	rate := c.Rate
	if rate == 0 {
		rate = math.Inf(1)
	}
	if o.Public {
		return nil
	}
	for _, r := range c.Addresses.Ranges() {
		if err := guard.Check(r.String(), rate); err != nil {
			return &Refusal{err.Error(), "use a lower --rate, or --public if they are yours to test"}
		}
	}
	return nil
}

func (o *Options) note(text string) {
	if o.Note != nil {
		o.Note(text)
	}
}
