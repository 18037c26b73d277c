//go:build linux

// Package session connects the engine of package probe to a machine. It finds the interface and the router for the
// targets, and removes targets that must not be probed. It opens the senders, receivers and files, drops its
// privileges, and runs the engine.
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

// Options are the options of a run. Zero fields are determined automatically or have the engine's defaults.
type Options struct {
	// Probe is passed to the engine. Run sets Addresses, ID, Key, Reset and the functions. It sets Source,
	// SourceMAC, NextHopMAC, LocalPorts and Seed if they are zero.
	Probe probe.Config

	Targets, Exclude []target.Range
	// AllowPrivate allows targets in private networks. AllowReserved allows all addresses that IANA has reserved.
	AllowPrivate, AllowReserved bool
	// Public allows rates above guard.ModestRate to public addresses.
	Public bool

	Interface string // default: the kernel's route to the first target
	Method    string // tc, xdp, ring or packet; default: see choose

	Filter probe.Filter // results that do not match are not written; the zero Filter matches all
	Format probe.Format
	Fields []probe.Field
	// Output receives the results, unless OutputFile is set.
	Output     io.Writer
	OutputFile string
	// StateFile saves the progress of the run, so that another run can resume it. It requires an OutputFile.
	StateFile string

	KeepPrivileges bool
	local          bool // the targets are neighbours on Interface: see route

	// Note is called with one line about each fact that the user did not ask for but should know.
	Note func(string)
}

// Refusal is an error in the user's request. It says what is wrong and what to do.
type Refusal struct{ Wrong, Do string }

// Error implements error.
func (r *Refusal) Error() string { return r.Wrong + "; " + r.Do }

// defaultPorts are the default source ports of SYN and UDP probes. They lie above the ports that Linux assigns to
// its own connections (ip_local_port_range). Otherwise those connections would receive our answers, or lose their
// own.
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
		// Each lane spends its time in system calls of a fraction of a millisecond. During a call the runtime takes
		// the lane's P away, and if there is no spare P the lane must wait for one when the call returns. Measured,
		// this costs a quarter of the rate.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), max(len(s.senders), len(s.receivers))+2)))
		c.Losses, c.Record, c.Mark = s.losses, files.record, files.mark
		sum, err = probe.Run(ctx, &c, s.senders, s.receivers)
	}
	return sum, errors.Join(err, files.finish(&sum), s.close())
}

// fillIn fills in values that the user left open.
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

// checkRate rejects a high rate to public addresses unless Public is set.
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
