package main

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"loam/gen/guard"
	"loam/gen/pace"
	"loam/gen/probe"
	"loam/gen/probe/session"
	"loam/gen/probe/target"
)

// probeFlags are the flags of loam gen probe.
type probeFlags struct {
	session           session.Options
	icmp, arp         bool
	tcp, udp, payload string
	targets           string // name of a file with targets
	exclude           []string
	blocklist         string // name of a file with excluded targets
	rate              string
	time              time.Duration
	fields            string
	metadata          string // name of the file for the summary
	quiet             bool
}

func (f *probeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	o, c := &f.session, &f.session.Probe
	flags.BoolVar(&f.icmp, "icmp", false, "probe by ICMP or ICMPv6 echo (the default)")
	flags.StringVar(&f.tcp, "tcp", "", "probe by a TCP SYN to each of these `PORTS`: 80,443,8000-8100")
	flags.StringVar(&f.udp, "udp", "", "probe by a UDP datagram to each of these `PORTS`")
	flags.BoolVar(&f.arp, "arp", false, "resolve the Ethernet addresses of neighbours, by ARP or Neighbor Discovery")
	flags.StringVar(&f.payload, "payload", "", "with --udp, the payload: dns, ntp, text:STRING, hex:DIGITS or file:PATH (default: by the port)")
	flags.StringVar(&f.targets, "targets", "", "add the ranges in this `FILE`, one a line")
	flags.StringArrayVar(&f.exclude, "exclude", nil, "leave out this `RANGE` (repeat for more)")
	flags.StringVarP(&f.blocklist, "blocklist", "b", "", "leave out the ranges in this `FILE`, one a line")
	flags.BoolVar(&o.AllowPrivate, "allow-private", false, "include private networks (RFC 1918 and similar)")
	flags.BoolVar(&o.AllowReserved, "allow-reserved", false, "include all networks that IANA has reserved, private networks too")
	flags.BoolVar(&o.Public, "public", false, "allow public addresses at any rate")
	flags.StringVarP(&f.rate, "rate", "r", "", "maximum probes a second: 1000, 10k, 1M or max (default: max; to public addresses 1000)")
	flags.IntVar(&c.Retries, "retries", 2, "number of further probes to an address without an answer")
	flags.DurationVar(&c.RetryAfter, "retry-after", probe.DefaultRetryAfter, "time before a further probe")
	flags.DurationVar(&c.Wait, "wait", probe.DefaultWait, "how long to wait for late answers at the end")
	flags.StringVar(&o.Interface, "dev", "", "interface `IF` on which probes are sent (default: the route's)")
	flags.StringVar(&o.Method, "method", "", "tc, xdp, ring or packet (default: xdp where the device does not copy, else tc, else ring)")
	parsedFlag(flags, &c.Path, f.parseSources, "src", "", "source `ADDRESSES`, up to 16: A,B,... or FIRST-LAST (default: the interface's)")
	parsedFlag(flags, &c.LocalPorts, parseLocalPorts, "src-ports", "", "source ports of --tcp and --udp, `FIRST-LAST`, unused by other programs (default 61000-65535)")
	parsedFlag(flags, &c.NextHopMAC, parseMAC, "dst-mac", "", "the router's `MAC` (default: resolved)")
	flags.Uint8Var(&c.HopLimit, "ttl", probe.DefaultHopLimit, "time to live, or hop limit")
	flags.Uint64Var(&c.Seed, "seed", 0, "seed of the order: the same seed gives the same order (default: a random seed)")
	flags.Uint64Var(&c.Shards, "shards", 1, "number of runs that share the targets, with the same --seed")
	flags.Uint64Var(&c.Shard, "shard", 0, "number of this run among them, from 0")
	flags.Uint64VarP(&c.Most, "max-targets", "n", 0, "probe only this many targets, the first in the order: a sample (default: all)")
	flags.DurationVar(&f.time, "time", 0, "end after this `time`, as with Ctrl-C (default: after all targets)")
	flags.VarP(&value[probe.Format]{&o.Format, parseFormat, "json"}, "output", "O", "format of the results: json or csv")
	flags.StringVarP(&o.OutputFile, "output-file", "o", "", "write the results to this `FILE`")
	flags.StringVarP(&f.fields, "fields", "f", "", "fields of a result: answer,code,ttl,rtt_ms,from,time,mac")
	parsedFlag(flags, &o.Filter, probe.ParseFilter, "filter", "", "report only results for which all `CONDITIONS` hold, such as \"answer=syn-ack,reset ttl>64 rtt_ms<10\"; a condition on the answer includes --all")
	flags.BoolVar(&c.All, "all", false, "also report closed ports and errors")
	flags.StringVar(&o.StateFile, "resume", "", "keep progress in this `FILE`, and continue from it after an interruption")
	flags.StringVar(&f.metadata, "metadata", "", "write a summary as JSON to this `FILE`")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print no progress and no summary")
	flags.BoolVar(&o.KeepPrivileges, "keep-privileges", false, "stay root after set-up")
}

// options returns the options of the run. It checks only those conditions that package session cannot check.
func (f *probeFlags) options(args []string) (o session.Options, err error) {
	o = f.session
	for _, step := range []func(*session.Options) error{
		func(o *session.Options) error { return f.whom(o, args) }, f.kind, f.speed, f.results,
	} {
		if err := step(&o); err != nil {
			return o, err
		}
	}
	switch c := &o.Probe; {
	case c.Retries < 0 || c.RetryAfter < 0 || c.Wait < 0 || f.time < 0:
		return o, &usageError{"--retries, --retry-after, --wait and --time count from 0", "leave them out"}
	case c.Shards < 1 || c.Shard >= c.Shards:
		return o, &usageError{fmt.Sprintf("there is no shard %d of %d", c.Shard, c.Shards), "they count from 0: --shards 2 --shard 0 and --shard 1"}
	case c.Shards > 1 && c.Seed == 0:
		return o, &usageError{"shards divide the targets by their order", "give all of them the same --seed"}
	}
	return o, nil
}

// parseSources parses source addresses: addresses or ranges, separated by commas. It returns the path with these
// sources.
func (f *probeFlags) parseSources(s string) (p probe.Path, err error) {
	p = f.session.Probe.Path
	var all []netip.Addr
	for one := range strings.SplitSeq(s, ",") {
		r, err := target.ParseRange(one)
		if err != nil {
			return p, &usageError{one + " is no address", "write addresses such as 192.0.2.1,192.0.2.2 or 192.0.2.1-192.0.2.9"}
		}
		for a := r.First; len(all) <= session.MaxSources; a = a.Next() {
			if all = append(all, a); a == r.Last {
				break
			}
		}
	}
	if len(all) > session.MaxSources {
		return p, &usageError{s + " are too many addresses", fmt.Sprintf("give up to %d", session.MaxSources)}
	}
	p.Source, p.More = all[0], all[1:]
	return p, nil
}

// parseLocalPorts parses a range of source ports.
func parseLocalPorts(s string) (probe.Ports, error) {
	ports, err := parsePorts(s)
	if err != nil || strings.Contains(s, ",") || ports[0] == 0 {
		return probe.Ports{}, &usageError{s + " is no range of ports", "write FIRST-LAST such as 61000-65535"}
	}
	return probe.Ports{First: ports[0], Last: ports[len(ports)-1]}, nil
}

// parseFormat parses the format of the results.
func parseFormat(s string) (probe.Format, error) {
	switch s {
	case "json":
		return probe.JSONLines, nil
	case "csv":
		return probe.CSV, nil
	}
	return 0, &usageError{s + " is no output", "use --output json or --output csv"}
}

// whom sets the targets of o, and the addresses that are excluded, from the arguments and the flags.
func (f *probeFlags) whom(o *session.Options, args []string) (err error) {
	if o.Targets, err = ranges("", args, "--targets", f.targets); err != nil {
		return err
	}
	if len(o.Targets) == 0 {
		return &usageError{"there is no target", "name addresses or prefixes: loam gen probe 192.0.2.0/24"}
	}
	o.Exclude, err = ranges("--exclude ", f.exclude, "--blocklist", f.blocklist)
	return err
}

// ranges parses the ranges in given, and those in the file if a file name is given.
func ranges(flag string, given []string, fileFlag, file string) (list []target.Range, err error) {
	for _, s := range given {
		r, err := target.ParseRange(s)
		if err != nil {
			return nil, &usageError{flag + err.Error(), "write 192.0.2.1, 192.0.2.0/24 or 192.0.2.1-192.0.2.9"}
		}
		list = append(list, r)
	}
	if file == "" {
		return list, nil
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, &usageError{fileFlag + " " + err.Error(), "name a file that can be read"}
	}
	defer in.Close()
	more, err := target.ReadList(in)
	if err != nil {
		return nil, &usageError{file + ", " + err.Error(), "write one range a line"}
	}
	return append(list, more...), nil
}

// kind sets the kind of probe, its ports and its payload in o, from the flags.
func (f *probeFlags) kind(o *session.Options) (err error) {
	c := &o.Probe
	given := 0
	for kind, ports := range map[probe.Kind]string{probe.SYN: f.tcp, probe.UDP: f.udp} {
		if ports == "" {
			continue
		}
		given++
		c.Kind = kind
		if c.Ports, err = parsePorts(ports); err != nil {
			return err
		}
	}
	if f.icmp {
		given++
	}
	if f.arp {
		c.Kind = probe.Neighbour
		given++
	}
	switch {
	case given > 1:
		return &usageError{"a run uses one kind of probe", "choose --icmp, --tcp, --udp or --arp"}
	case f.payload != "" && c.Kind != probe.UDP:
		return &usageError{"--payload needs --udp", "leave it out"}
	case f.payload != "":
		if c.Payload, err = probe.ParsePayload(f.payload); err != nil {
			return &usageError{"--payload: " + err.Error(), "see loam gen probe --help"}
		}
	case c.Kind == probe.UDP:
		c.Payload = probe.DefaultPayload(c.Ports)
	}
	return nil
}

// parsePorts parses a comma-separated list of ports and port ranges.
func parsePorts(list string) (ports []uint16, err error) {
	for one := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(one, "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.ParseUint(low, 10, 16)
		last, err2 := strconv.ParseUint(high, 10, 16)
		if err1 != nil || err2 != nil || last < first {
			return nil, &usageError{fmt.Sprintf("%q is no port", one), "write ports from 0 to 65535 such as 80,443,8000-8100"}
		}
		for p := first; p <= last; p++ {
			ports = append(ports, uint16(p))
		}
	}
	return ports, nil
}

// speed sets the rate of probes in o. Without --rate and without --public, the rate is guard.ModestRate if a
// target is a public address; without --rate it is otherwise unlimited.
func (f *probeFlags) speed(o *session.Options) error {
	text := f.rate
	if text == "" {
		text = "max"
		for _, r := range o.Targets {
			if !o.Public && guard.PublicPattern(r.String()) {
				text = strconv.Itoa(guard.ModestRate)
			}
		}
	}
	if text != "max" && !strings.HasSuffix(text, "ps") {
		text += "pps"
	}
	r, err := pace.ParseRate(text)
	if err != nil || r.Unit != pace.Frames {
		return &usageError{fmt.Sprintf("--rate %s is no number of probes a second", f.rate), "write 1000, 10k, 1M or max"}
	}
	o.Probe.Rate = float64(r.PerSecond)
	return nil
}

// results sets in o which fields of a result are written.
func (f *probeFlags) results(o *session.Options) (err error) {
	o.Fields = probe.DefaultFields(o.Probe.Kind)
	if f.fields != "" {
		if o.Fields, err = probe.ParseFields(f.fields, o.Probe.Kind); err != nil {
			return &usageError{"--fields: " + err.Error(), "see loam gen probe --help"}
		}
	}
	return nil
}
