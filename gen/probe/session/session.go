//go:build linux

// Package session joins the engine of package probe to a machine: it finds out by
// which interface and which router the targets are reached, leaves out whom nobody
// may ask, opens the ways to send and to receive and the files, gives up its
// privileges, and has the engine run.
//
// Read session.go, then target.go (whom), station.go (by what) and files.go (where
// the answers go).
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

// Options are what a user asks for. What is zero is found out, or left to the
// engine.
type Options struct {
	// Probe is passed on; Addresses, ID, Key and the functions are filled in here, and
	// so are Source, SourceMAC and NextHopMAC where they are zero, LocalPorts and Seed.
	// Reset is decided here.
	Probe probe.Config

	Targets, Exclude []target.Range
	// AllowPrivate lets private networks be asked, AllowReserved everything that IANA
	// has set apart.
	AllowPrivate, AllowReserved bool
	// Public allows more than guard.ModestRate to public addresses.
	Public bool

	Interface string // default: by the kernel's route to the first target
	Method    string // tc, xdp, ring or packet; default: see choose

	Format probe.Format
	Fields []probe.Field
	// Output takes the results, unless there is an OutputFile.
	Output     io.Writer
	OutputFile string
	// StateFile keeps how far the run is, for another to go on from; it takes an
	// OutputFile.
	StateFile string

	KeepPrivileges bool
	// Note is told, in a line, what the user did not ask for and should know.
	Note func(string)
}

// Refusal is an error about what the user asks for: what is wrong, and what to do.
type Refusal struct{ Wrong, Do string }

// Error implements error.
func (r *Refusal) Error() string { return r.Wrong + "; " + r.Do }

// defaultPorts are what SYNs and datagrams are sent from: above those that Linux
// gives to its own connections (ip_local_port_range), which would otherwise get
// our answers, or lose theirs.
var defaultPorts = probe.Ports{First: 61000, Last: 65535}

// Run runs it. The summary is empty if the run did not begin.
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
	files, err := o.openFiles(&c)
	if err != nil {
		return sum, err
	}
	s, err := o.openStation(&c)
	if err != nil {
		return sum, errors.Join(err, files.close())
	}
	if !o.KeepPrivileges {
		err = guard.Drop()
	}
	if err == nil {
		// Each lane works in system calls of a fraction of a millisecond. The runtime takes
		// its turn away meanwhile, and if the others have none to spare the lane waits for
		// one when it comes back: measured, that costs a quarter of the rate.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), max(len(s.senders), len(s.receivers))+2)))
		c.Losses, c.Record, c.Mark = s.losses, files.record, files.mark
		sum, err = probe.Run(ctx, &c, s.senders, s.receivers)
	}
	return sum, errors.Join(err, files.finish(&sum), s.close())
}

// fillIn makes up what the user leaves open.
func fillIn(c *probe.Config) {
	if c.Kind != probe.Echo && c.LocalPorts == (probe.Ports{}) {
		c.LocalPorts = defaultPorts
	}
	var b [26]byte
	rand.Read(b[:]) // never fails
	c.Key = siphash.Key{K0: binary.NativeEndian.Uint64(b[:]), K1: binary.NativeEndian.Uint64(b[8:])}
	c.ID = binary.NativeEndian.Uint16(b[16:])
	if c.Seed == 0 {
		c.Seed = binary.NativeEndian.Uint64(b[18:])
	}
}

// checkRate refuses to ask the public fast without its being said.
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
