package main

import (
	"cmp"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"loam/unikernel"
)

// parseRun checks and parses the flags of "loam run" without starting a program.
func parseRun(t *testing.T, args ...string) (*runOptions, error) {
	t.Helper()
	var f runFlags
	var o *runOptions
	cmd := &cobra.Command{
		Use: "run", Args: oneProgram, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o, err = f.options(splitProgram(cmd, args))
			return err
		},
	}
	f.register(cmd)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return o, err
}

// setDefaults sets the values that a command line without flags results in, so that the table lists only other
// values.
func (o *runOptions) setDefaults() {
	if o.platform == "process" {
		return
	}
	o.platform = cmp.Or(o.platform, "auto")
	o.memory, o.cpus, o.model = cmp.Or(o.memory, 256<<20), cmp.Or(o.cpus, 1), cmp.Or(o.model, "q35")
}

func TestRunOptions(t *testing.T) {
	shell := "/bin/sh"
	local := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port) }
	for _, test := range []struct {
		args string
		want runOptions
	}{
		{".", runOptions{program: "."}},
		{"-u www-data:adm --root d /bin/sh", runOptions{program: "/bin/sh", root: "d", user: "www-data:adm"}},
		{"--root image.tar", runOptions{root: "image.tar"}},
		{"--root image.tar --entrypoint /bin/sh -- -c ls", runOptions{root: "image.tar", entrypoint: &shell, args: []string{"-c", "ls"}}},
		{"./server -- -v --x=y", runOptions{program: "./server", args: []string{"-v", "--x=y"}}},
		{"example.org/cmd/x@v1.2.3", runOptions{program: "example.org/cmd/x@v1.2.3"}},
		{"-p 8080:80 main.go", runOptions{program: "main.go", publish: []publication{{host: local(8080), loopback: true, guest: 80}}}},
		{"main.go -p 8080:80/tcp --publish 53:53/udp", runOptions{program: "main.go", publish: []publication{
			{host: local(8080), loopback: true, guest: 80},
			{host: local(53), loopback: true, guest: 53, udp: true},
		}}},
		{"-p 8080:80 -p 8080:80/udp .", runOptions{program: ".", publish: []publication{
			{host: local(8080), loopback: true, guest: 80},
			{host: local(8080), loopback: true, guest: 80, udp: true},
		}}},
		{"-p 0.0.0.0:8080:80 -p [::1]:9:9 .", runOptions{program: ".", publish: []publication{
			{host: netip.MustParseAddrPort("0.0.0.0:8080"), guest: 80},
			{host: netip.MustParseAddrPort("[::1]:9"), guest: 9},
		}}},
		{"-e A=1 -e B= -e C=x=y,z .", runOptions{program: ".", env: []string{"A=1", "B=", "C=x=y,z"}}},
		{"-v testdata:/srv/../data -v options.go:/etc/x .", runOptions{program: ".", volumes: []volume{
			{host: "testdata", guest: "/data"}, {host: "options.go", guest: "/etc/x"},
		}}},
		{"-v options.go:/a/b/c -v testdata:/a:ro .", runOptions{program: ".", volumes: []volume{
			{host: "testdata", guest: "/a"}, {host: "options.go", guest: "/a/b/c"},
		}}},
		{"-v testdata:/a:rw -v testdata:/b:rw,cache=none .", runOptions{program: ".", volumes: []volume{
			{host: "testdata", guest: "/a", writable: true}, {host: "testdata", guest: "/b", writable: true, noCache: true},
		}}},
		{"--relay -p 8080:80 .", runOptions{program: ".", relay: true, publish: []publication{{host: local(8080), loopback: true, guest: 80}}}},
		{"--pcap all.pcapng .", runOptions{program: ".", pcap: "all.pcapng"}},
		{"--platform process --net none .", runOptions{program: ".", platform: "process", net: network{kind: noNetwork}}},
		{"--platform vm -m 2G --cpus 4 .", runOptions{program: ".", platform: "vm", memory: 2 << 30, cpus: 4, model: "q35"}},
		{"--machine microvm .", runOptions{program: ".", model: "microvm"}},
		{"--platform vm --disk d.img --disk e,f.img .", runOptions{program: ".", platform: "vm", disks: []unikernel.Disk{{Kind: "virtio", File: "d.img"}, {Kind: "virtio", File: "e,f.img"}}}},
		{"--disk d.img:/data --disk nvme:e:/e:ro --disk-size 1G .", runOptions{program: ".", disks: []unikernel.Disk{
			{Kind: "virtio", File: "d.img", Path: "/data", Size: 1 << 30}, {Kind: "nvme", File: "e", Path: "/e", ReadOnly: true, Size: 1 << 30},
		}}},
		{"-o snapshot --root d.img --disk e.img:/e bash", runOptions{program: "bash", root: "d.img", snapshot: true, disks: []unikernel.Disk{
			{Kind: "virtio", File: "e.img", Path: "/e", Snapshot: true},
		}}},
		{"-o ro --root d.img bash", runOptions{program: "bash", root: "d.img", readOnly: true}},
		{"-t /bin/bash", runOptions{program: "/bin/bash", terminal: unikernel.OwnTerminal}},
		{"-t=false /bin/bash", runOptions{program: "/bin/bash", terminal: unikernel.NoTerminal}},
		{"--host-loopback .", runOptions{program: ".", net: network{loopback: true}}},
		{"--net tap:loam0 .", runOptions{program: ".", net: network{kind: tapNetwork, tap: "loam0"}}},
		{"--net tap:loam0 --ip 192.0.2.2/24 --gw 192.0.2.1 .", runOptions{program: ".", net: network{
			kind: tapNetwork, tap: "loam0",
			address: netip.MustParsePrefix("192.0.2.2/24"), gateway: netip.MustParseAddr("192.0.2.1"),
		}}},
		{"--net tap:loam0 --ip 192.0.2.2/24,2001:db8::2/64 --gw fe80::1 .", runOptions{program: ".", net: network{
			kind: tapNetwork, tap: "loam0", address: netip.MustParsePrefix("192.0.2.2/24"),
			address6: netip.MustParsePrefix("2001:db8::2/64"), gateway6: netip.MustParseAddr("fe80::1"),
		}}},
		{"--net tap:loam0 --ip 192.0.2.0/31 .", runOptions{program: ".", net: network{
			kind: tapNetwork, tap: "loam0", address: netip.MustParsePrefix("192.0.2.0/31"),
		}}},
	} {
		got, err := parseRun(t, strings.Fields(test.args)...)
		if err != nil {
			t.Errorf("%s: %v", test.args, err)
			continue
		}
		test.want.setDefaults()
		// the comparison treats an empty list and nil as equal
		if len(got.env) == 0 {
			got.env = nil
		}
		if len(got.args) == 0 {
			got.args = nil
		}
		if !reflect.DeepEqual(*got, test.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", test.args, *got, test.want)
		}
	}
}

// TestRunRefuses checks that every mistake is reported with what is wrong and what to do.
func TestRunRefuses(t *testing.T) {
	for _, test := range []struct{ args, wrong string }{
		{"", "there is no program to run"},
		{"-- -v", "there is no program to run"},
		{"a b", `"b" stands behind the program "a"`},
		{"a b -- c", `"b" stands behind the program "a"`},
		{"--platform cloud .", `there is no platform "cloud"`},
		{"--platform vm -m lots .", `-m lots is no size`},
		{"-m lots .", `-m lots is no size`},
		{"--disk d.img --disk-size lots .", `--disk-size lots is no size`},
		{"--disk-size 1G .", `--disk-size has no use without --disk`},
		{"-o ro .", `-o ro has no use without --disk or --root`},
		{"-o sync --root a .", `there is no option -o sync`},
		{"-o ro --disk d:/d:snapshot .", `--disk d:/d:snapshot: ro and snapshot exclude each other`},
		{"--disk d.img:/ .", `--disk d.img:/ would be the root`},
		{"--disk :/data .", `--disk :/data names no file`},
		{"-v missing:/x .", `-v missing:/x: no such file or directory`},
		{"--entrypoint /bin/sh .", `--entrypoint has no use without --root`},
		{"--root image.tar a b", `"b" stands behind the program "a"`},
		{"-u :adm .", `-u :adm names no user`},
		{"-u www-data: .", `-u www-data: names no user`},
		{"-v / .", `-v "/" is no folder or file, or would be the root`},
		{"-v .:/ .", `-v ".:/" is no folder or file, or would be the root`},
		{"-v .:/a -v testdata:/a/ .", "-v .:/a and -v testdata:/a/ take the same place"},
		{"-v options.go:/a:rw .", `-v options.go:/a:rw: only a folder can be given with :rw, and this is none: give its folder`},
		{"-v none:/a:rw .", `-v none:/a:rw: no such file or directory`},
		{"-v .:/a:rw,cache=all .", `-v .:/a:rw,cache=all: there is no mode rw,cache=all`},
		{"-v .:/a:rw -v testdata:/a/b .", `-v testdata:/a/b lies inside -v .:/a:rw`},
		{"-v /dev/null:/a .", `-v /dev/null:/a: it is neither a folder nor a file, but a device, a socket or a pipe`},
		{"--net none --host-loopback .", "--host-loopback has no use with --net none"},
		{"--net tun:x .", `there is no network "tun:x"`},
		{"--net tap .", `there is no network "tap"`},
		{"--net= .", `there is no network ""`},
		{"--net tap: .", "--net tap: names no device"},
		{"--net tap:0123456789abcdef .", "--net tap:0123456789abcdef names no device"},
		{"--net tap:a/b .", "--net tap:a/b names no device"},
		{"--net tap:tap%d .", "--net tap:tap%d names no device"},
		{"--net tap:.. .", "--net tap:.. names no device"},
		{"--ip 192.0.2.2/24 .", "--ip and --gw have no use with --net user"},
		{"--net none --gw 192.0.2.1 .", "--ip and --gw have no use with --net none"},
		{"--net tap:t --ip 192.0.2.2 .", "--ip 192.0.2.2 is no address with a prefix"},
		{"--net tap:t --ip 192.0.2.2/33 .", "--ip 192.0.2.2/33 is no address with a prefix"},
		{"--net tap:t --ip ::ffff:192.0.2.2/120 .", "--ip ::ffff:192.0.2.2/120 is no address with a prefix"},
		{"--net tap:t --ip ff02::1/64 .", "--ip ff02::1/64 cannot be the address of a host"},
		{"--net tap:t --ip 192.0.2.2/24,192.0.2.3/24 .", "--ip 192.0.2.2/24 and --ip 192.0.2.3/24 are of one version of IP"},
		{"--net tap:t --ip 192.0.2.2/24 --gw fe80::1 .", "--gw fe80::1 needs --ip"},
		{"--net tap:t --ip 2001:db8::2/64 --gw fe80::1%eth0 .", "--gw fe80::1%eth0 is no address"},
		{"--net tap:t --ip 2001:db8::2/64 --gw fe80::1 --gw 2001:db8::1 .", "--gw fe80::1 and --gw 2001:db8::1 are of one version of IP"},
		{"--net tap:t --ip 2001:db8::2/64 --gw 2001:db8:1::1 .", "--gw 2001:db8:1::1 is not a neighbour of --ip 2001:db8::2/64"},
		{"--net tap:t --ip 192.0.2.0/24 .", "--ip 192.0.2.0/24 is the first or last address of its network"},
		{"--net tap:t --ip 192.0.2.255/24 .", "--ip 192.0.2.255/24 is the first or last address of its network"},
		{"--net tap:t --ip 127.0.0.2/24 .", "--ip 127.0.0.2/24 cannot be the address of a host"},
		{"--net tap:t --ip 224.0.0.5/24 .", "--ip 224.0.0.5/24 cannot be the address of a host"},
		{"--net tap:t --ip 0.0.0.0/0 .", "--ip 0.0.0.0/0 cannot be the address of a host"},
		{"--net tap:t --gw 192.0.2.1 .", "--gw 192.0.2.1 needs --ip"},
		{"--net tap:t --ip 192.0.2.2/24 --gw x .", "--gw x is no address"},
		{"--net tap:t --ip 192.0.2.2/24 --gw 192.0.3.1 .", "--gw 192.0.3.1 is not a neighbour of --ip 192.0.2.2/24"},
		{"--net tap:t --ip 192.0.2.2/24 --gw 192.0.2.2 .", "--gw 192.0.2.2 is not a neighbour of --ip 192.0.2.2/24"},
		{"-p 8080:80 --net none .", "-p has no use with --net none"},
		{"-p 8080:80 --net tap:t .", "-p has no use with --net tap:t"},
		{"-p 80 .", "-p 80 is no pair of ports"},
		{"-p 0:80 .", "-p 0:80 is no pair of ports"},
		{"-p 80:0 .", "-p 80:0 is no pair of ports"},
		{"-p 80:65536 .", "-p 80:65536 is no pair of ports"},
		{"-p +80:80 .", "-p +80:80 is no pair of ports"},
		{"-p 80:80/sctp .", "-p 80:80/sctp is no pair of ports"},
		{"-p localhost:80:80 .", "-p localhost:80:80 is no pair of ports"},
		{"-p 1.2.3.4:0:80 .", "-p 1.2.3.4:0:80 is no pair of ports"},
		{"-p ::1:80:80 .", "-p ::1:80:80 is no pair of ports"},
		{"-p 80:80 -p 127.0.0.1:80:81 .", "-p 80:80 and -p 127.0.0.1:80:81 take the same port of the host"},
		{"-e PATH .", "-e PATH sets nothing"},
		{"-e =x .", "-e =x sets nothing"},
	} {
		_, err := parseRun(t, strings.Fields(test.args)...)
		usage, ok := err.(*usageError)
		if !ok {
			t.Errorf("%s: got %v, want a mistake of the user", test.args, err)
			continue
		}
		if usage.wrong != test.wrong || usage.do == "" {
			t.Errorf("%s: got %q, want %q and what to do", test.args, usage, test.wrong)
		}
	}
}
