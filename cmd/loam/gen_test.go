package main

import (
	"strings"
	"testing"
)

// Mistakes in the commands of the packet engine are reported in one line that states the mistake and the remedy. The
// exit status is 2.
func TestGenMistakes(t *testing.T) {
	const help = "; see loam gen --help"
	for _, test := range []struct{ args, want string }{
		{"gen", "no interface is given; say --dev IF; ip link lists those that there are"},
		{"gen snk", `there is no command "snk"; did you mean loam gen sink?`},
		{"gen --dev lo", "no destination is given; say --dst IP, or --template LAYERS"},
		{"gen --dev lo --dst here", "--dst here is no address; write an address such as 10.0.0.2, or a prefix such as 10.0.0.0/24"},
		{"gen --dev lo --dst 10.0.0.2 --rate fast", `--rate "fast" is not a rate; allowed: max; whole numbers, 1pps to 1Gpps; 1bps to 1Tbps, of frames with FCS (layer 2); 1bpsL1 to 1TbpsL1, with preamble and gap; k, M, G and T before the unit; 0.0001% to 100% of the line` + help},
		{"gen --dev lo --dst 10.0.0.2 --size 63", `--size "63" is not a size; allowed: N, A-B, random:A-B, imix, or imix:SIZE=WEIGHT,..., with sizes from 64 to 65553 bytes, FCS included` + help},
		{"gen --dev lo --dst 10.0.0.2 --method smoke", `method "smoke": there is no such method; allowed: `},
		{"gen --dev lo --dst 10.0.0.2 --queues 0", "--queues, --batch and --flows count from 1; leave them out for one queue, one flow"},
		{"gen --dev lo --dst 10.0.0.2 --time -1s", "--time -1s is no time; leave it out to send until Ctrl-C"},
		{"gen --dev lo --dst 10.0.0.2 --dst-mac x", "--dst-mac x is no address of Ethernet; write it as 02:00:00:00:00:01"},
		{"gen --dev lo --dst 10.0.0.2 --src-mac x", "--src-mac x is no address of Ethernet; write it as 02:00:00:00:00:01"},
		{"gen --dev lo --dst 10.0.0.2 --vary ttl", "--vary ttl is no setting; write --vary FIELD=PATTERN, such as udp.sport=1024-2047"},
		{"gen --dev lo --dst 10.0.0.2 --vary ip.tll=3", "ip.tll: there is no such field in IPv4; allowed: version, ihl, "},
		{"gen --dev lo --dst 10.0.0.2 --template eth;ipx", `ipx: there is no such layer; allowed: eth, vlan, qinq, mpls, arp, ip, ip6, icmp, icmp6, udp, tcp, sctp, sctpdata, vxlan, geneve, gtpu, gre, payload` + help},
		{"gen --dev lo --template @/nonexistent", "--template open /nonexistent: no such file or directory; give a file that can be read"},
		{"gen --dev nosuch0 --dst 10.0.0.2", `stream 1: there is no interface "nosuch0": ip link lists those that there are`},
		{"gen --dev lo --dst 8.8.8.8 --rate 2kpps", "stream 1: 8.8.8.8 is a public address, and more than 1000 frames a second to it may be an attack; use a lower --rate, or --public if they are yours to test"},
		{"gen --dev lo --dst 10.0.0.2 --json --tui", "--json and --tui want the same terminal; leave one of them out"},
		{"gen --dev lo --dst 10.0.0.2 --prom nowhere:x", "--prom nowhere:x: "},
		{"gen --dev lo --dst 10.0.0.2 --plot /nonexistent/x", "--plot open /nonexistent/x: no such file or directory; give a file that can be written"},
		{"gen --dev lo --dst 10.0.0.2 --time 0s", "--time 0s is no time; leave it out to send until Ctrl-C"},
		{"gen --dev lo --dst 10.0.0.2 --patience 0s", "--patience 0s is no time to wait; give a time such as 30s, or leave it out for a second"},
		{"gen --dev lo --dst 10.0.0.2 --rate 0.5pps", `--rate "0.5pps" is not a rate; allowed: `},
		{"gen --dev lo --dst 10.0.0.2 --method udp --qdisc", "--qdisc has no effect with the method udp; allowed: packet, ring, loam"},
		{"gen --dev lo --dst 10.0.0.2 --method ring --plain", "--plain has no effect with the method ring; allowed: mmsg"},
		{"gen replay x --dev lo --method tc --qdisc", "--qdisc has no effect with the method tc; use packet or ring, or leave it out"},
		{"gen run testdata/gen/qdisc.yaml", "qdisc has no effect with the method udp; allowed: packet, ring, loam"},
		{"gen run testdata/gen/public.yaml", "stream 1: 8.8.8.8 is a public address, and more than 1000 frames a second to it may be an attack; use a lower rate, or public: true if they are yours to test"},
		{"gen sink --dev lo --time 0s", "--time 0s is no time; leave it out to receive until Ctrl-C"},
		{"gen --dev lo --dst 10.0.0.2 --spacing odd", `--spacing "odd" is no spacing; allowed: even, poisson, burst:N with N from 1 to 1000000` + help},
		{"gen --dev lo --dst 10.0.0.2 --rate max --spacing poisson", "stream 1: there is a spacing and no rate: give a rate"},
		{"gen --dev lo --dst 10.0.0.2 --rate 50%", "a rate of 50% needs the speed of lo, which does not report one: give the rate in bits, such as 1GbpsL1"},
		{"gen --dev lo --dst 10.0.0.2 --control nowhere:x", "--control nowhere:x: "},
		{"gen replay x --dev lo --time 0s", "--time 0s is no time; leave it out to send until the end of the file"},
		{"gen replay x --dev lo --loops -1", "--loops -1 is no number of times; use 1 or more, or 0 to send until --time or Ctrl-C"},
		{"gen replay x --dev lo --map 10.0.0.0/8=10.0.0.1", "--map 10.0.0.1/32 has no room for the addresses of 10.0.0.0/8; see loam gen replay --help"},
		{"gen replay x --dev lo --map-port 80", "--map-port 80 has no =; see loam gen replay --help"},
		{"gen sink", "no interface is given; say --dev IF; ip link lists those that there are"},
		{"gen sink now", `loam gen sink takes no argument, and got "now"; leave it out`},
		{"gen sink --dev nosuch0", `there is no interface "nosuch0": ip link lists those that there are`},
		{"gen sink --dev lo --method udp", "the method udp does not receive"},
		{"gen run", "one file is wanted, and 0 are given; say loam gen run FILE.yaml"},
		{"gen run /nonexistent.yaml", "open /nonexistent.yaml: no such file or directory; give a file that can be read"},
		{"gen run testdata/gen/typo.yaml", `testdata/gen/typo.yaml: line 3: unknown field "rtae"; see loam gen run --help`},
		{"gen run testdata/gen/nodev.yaml", `voice: there is no interface "nosuch0": ip link lists those that there are`},
		{"gen replay --dev lo", "one file is wanted, and 0 are given; say loam gen replay FILE.pcapng --dev IF"},
		{"gen replay x", "no interface is given; say --dev IF; ip link lists those that there are"},
		{"gen replay /nonexistent --dev lo", "open /nonexistent: no such file or directory; give a file that can be read"},
		{"gen replay testdata/gen/typo.yaml --dev lo", "testdata/gen/typo.yaml: not a capture file: "},
		{"gen replay x --dev lo --method udp", "the method udp does not send whole frames; use ring, packet, xdp, tc, pcap or tap"},
		{"gen replay x --dev lo --timing none", `there is no timing "none"; use --timing original, or --rate`},
		{"gen replay x --dev lo --speed 0", "--speed 0; give a number above 0, to 1000000"},
		{"gen rfc2544", "two interfaces are wanted; say --tx IF --rx IF, with the device in between"},
		{"gen rfc2544 --tx lo --rx nosuch0", `there is no interface "nosuch0": ip link lists those that there are`},
		{"gen rfc2544 --tx lo --rx lo --tests speed", `there is no test "speed"; allowed: [throughput latency loss back-to-back]`},
		{"gen rfc2544 --tx lo --rx lo --sizes 20", "--sizes 20 is no size of a frame; give sizes from 64 to 9018"},
		{"gen rfc2544 --tx lo --rx lo --repeats 0", "--trial and --repeats must be above zero; leave them out"},
		{"gen bench", "no interface is given; say --dev IF; ip link lists those that there are"},
		{"gen bench --dev lo", `--dst "" is no address; write an address such as 10.0.0.2`},
		{"gen bench --dev lo --dst 8.8.8.8", "8.8.8.8 is a public address, and more than 1000 frames a second to it may be an attack; use --public if it is yours to test"},
		{"gen bench --dev lo --dst 10.0.0.2 --size 20", "--size 20 is no size of a frame; give 64 to 9018"},
		{"gen bench --dev nosuch0 --dst 10.0.0.2", `there is no interface "nosuch0": ip link lists those that there are`},
		{"gen bench --dev lo --dst 10.0.0.2 --methods smoke", `method "smoke": there is no such method; allowed: net, `},
	} {
		out, errs, status := loam(t, strings.Fields(test.args)...)
		if out != "" || !strings.HasPrefix(errs, "loam: "+test.want) || strings.Count(errs, "\n") != 1 || status != statusUsage {
			t.Errorf("loam %s: status %d\n%s%s\nwant status %d\nloam: %s", test.args, status, out, errs, statusUsage, test.want)
		}
	}
}
