package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"loam/gen/probe"
	"loam/gen/probe/session"
)

// probeOptions parses a command line of loam gen probe.
func probeOptions(t *testing.T, line ...string) (session.Options, error) {
	t.Helper()
	var f probeFlags
	cmd := newGenProbe()
	cmd.ResetFlags()
	f.register(cmd)
	if err := cmd.ParseFlags(line); err != nil {
		return session.Options{}, wrongFlag(cmd, err)
	}
	return f.options(cmd.Flags().Args())
}

func TestProbeFlags(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "list")
	if err := os.WriteFile(list, []byte("198.51.100.0/24 # two\n203.0.113.7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := probeOptions(t, "192.0.2.0/24", "--tcp", "80,443,8000-8002", "--targets", list, "--exclude", "192.0.2.9", "-b", list,
		"--rate", "10k", "--shards", "4", "--shard", "3", "--seed", "7", "--src", "192.0.2.1,192.0.2.5-192.0.2.6", "--filter", "ttl>3", "--src-ports", "50000-50009",
		"--dst-mac", "02:00:00:00:00:01", "-O", "csv", "-o", "out", "--resume", "state", "--ttl", "9", "--retries", "5", "--all", "-n", "1000")
	if err != nil {
		t.Fatal(err)
	}
	c := o.Probe
	if len(o.Targets) != 3 || len(o.Exclude) != 3 || o.OutputFile != "out" || o.StateFile != "state" || o.Format != probe.CSV {
		t.Errorf("%+v", o)
	}
	if c.Kind != probe.SYN || !reflect.DeepEqual(c.Ports, []uint16{80, 443, 8000, 8001, 8002}) || c.Rate != 10_000 || c.Shard != 3 || c.Shards != 4 ||
		c.Seed != 7 || fmt.Sprint(c.Sources()) != "[192.0.2.1 192.0.2.5 192.0.2.6]" || c.LocalPorts != (probe.Ports{First: 50000, Last: 50009}) ||
		c.NextHopMAC.String() != "02:00:00:00:00:01" || c.HopLimit != 9 || c.Most != 1000 || c.Retries != 5 || !c.All {
		t.Errorf("%+v", c)
	}
}

// By default, public addresses are probed at the modest rate and private ones as fast as possible.
func TestProbeRate(t *testing.T) {
	for _, c := range []struct {
		line string
		want float64
	}{
		{"10.0.0.0/8", 0},
		{"8.0.0.0/8", 1000},
		{"10.0.0.0/8 8.8.8.8", 1000},
		{"8.0.0.0/8 --public", 0},
		{"8.0.0.0/8 --rate max", 0}, // this rate is rejected later, by package session
		{"10.0.0.0/8 -r 500", 500},
		{"10.0.0.0/8 --rate 2.5Mpps", 2_500_000},
	} {
		o, err := probeOptions(t, strings.Fields(c.line)...)
		if err != nil || o.Probe.Rate != c.want {
			t.Errorf("%s: %v, %v; want %v", c.line, o.Probe.Rate, err, c.want)
		}
	}
}

// A service on a well-known port gets a payload that it answers.
func TestProbePayload(t *testing.T) {
	for _, c := range []struct {
		line string
		want int
	}{
		{"10.0.0.1 --udp 53", 17}, {"10.0.0.1 --udp 123", 48}, {"10.0.0.1 --udp 53,123", 0}, {"10.0.0.1 --udp 9", 0},
		{"10.0.0.1 --udp 9 --payload dns", 17}, {"10.0.0.1 --udp 53 --payload text:abc", 3}, {"10.0.0.1 --udp 53 --payload hex:00ff", 2},
	} {
		o, err := probeOptions(t, strings.Fields(c.line)...)
		if err != nil || len(o.Probe.Payload) != c.want {
			t.Errorf("%s: %x, %v", c.line, o.Probe.Payload, err)
		}
	}
}

// Mistakes are reported in one line that says what to do.
func TestProbeMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"":                                 "there is no target",
		"example.org":                      "no address",
		"10.0.0.1 --exclude x":             "--exclude",
		"10.0.0.1 --targets /none":         "can be read",
		"10.0.0.1 --tcp 80 --udp 53":       "a run uses one kind of probe",
		"10.0.0.1 --icmp --udp 53":         "a run uses one kind of probe",
		"10.0.0.1 --tcp 70000":             "is no port",
		"10.0.0.1 --tcp 9-8":               "is no port",
		"10.0.0.1 --payload dns":           "--payload needs --udp",
		"10.0.0.1 --udp 9 --payload x":     "is no payload",
		"10.0.0.1 --udp 9 --payload hex:0": "odd length",
		"10.0.0.1 --rate fast":             "no number of probes",
		"10.0.0.1 --rate 1Gbps":            "no number of probes",
		"10.0.0.1 --src x":                 "is no address",
		"10.0.0.1 --dst-mac x":             "no address of Ethernet",
		"10.0.0.1 --src-ports 1,2":         "no range of ports",
		"10.0.0.1 --output xml":            "no output",
		"10.0.0.1 --fields smell":          "no field",
		"10.0.0.1 --shards 2 --shard 2":    "no shard",
		"10.0.0.1 --shards 2":              "the same --seed",
		"10.0.0.1 --retries -1":            "count from 0",
		"10.0.0.1 --arp --icmp":            "a run uses one kind of probe",
		"10.0.0.1 --src 10.0.0.0/24":       "too many addresses; give up to 16",
		"10.0.0.1 --filter ttl":            "compares nothing; allowed: ",
	} {
		_, err := probeOptions(t, strings.Fields(line)...)
		var usage *usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want %q", line, err, want)
		}
	}
}
