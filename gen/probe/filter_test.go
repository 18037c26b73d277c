package probe

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestFilter(t *testing.T) {
	r := Result{
		Addr: netip.MustParseAddr("10.1.2.3"), From: netip.MustParseAddr("10.9.9.9"), Port: 443, Answer: Unreachable, Code: 13,
		HopLimit: 60, RTT: 2500 * time.Microsecond,
	}
	for text, want := range map[string]bool{
		"answer=unreachable": true, "answer!=unreachable": false, "answer=syn-ack,reset": false, "answer!=syn-ack,reset": true,
		"port=80,443": true, "port!=80,443": false, "port>=443 port<444": true, "port<443": false, "port<=442": false,
		"ttl>59": true, "ttl>60": false, "rtt_ms<2.6": true, "rtt_ms=2.5": true, "rtt_ms<2.5": false, "code=13": true,
		"address=10.1.0.0/16": true, "address!=10.1.0.0/16": false, "address=10.1.2.3": true, "address=192.0.2.1,10.1.2.3": true,
		"from=10.1.0.0/16": false, "from!=10.1.0.0/16": true, "  port=443   ttl=60 ": true, "port=443 ttl=61": false,
	} {
		f, err := ParseFilter(text)
		if err != nil || f.Match(&r) != want || f.Answers != strings.Contains(text, "answer") {
			t.Errorf("%q: %v, %v; want %v", text, f.Match(&r), err, want)
		}
	}
	r.RTT = -1
	for _, text := range []string{"rtt_ms<1", "rtt_ms>=0", "rtt_ms!=3"} {
		if f, err := ParseFilter(text); err != nil || f.Match(&r) {
			t.Errorf("%s holds for an unknown time, %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"": "there is no condition", "port": "compares nothing", "port!4": "compares nothing", "port=": "is no value", "smell=1": "is no value",
		"ttl<1,2": "does not compare that", "address>10.0.0.0/8": "does not compare that", "answer=maybe": "is no value", "rtt_ms=NaN": "is no value",
	} {
		if _, err := ParseFilter(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "allowed: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("answer=syn-ack ttl>64 rtt_ms<=10 address=10.0.0.0/8 port!=22,23")
	f.Fuzz(func(t *testing.T, text string) {
		if filter, err := ParseFilter(text); err == nil {
			filter.Match(&Result{})
		}
	})
}
