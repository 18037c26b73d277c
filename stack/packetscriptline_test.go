package stack_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/stack/fastopen"
	"loam/wire"
)

// The lines of packet scripts: packetscript_test.go.

// scriptPacket is a segment of a script. Its sequence numbers are relative.
type scriptPacket struct {
	tcp        wire.TCP
	length     int  // bytes of data
	hasWindow  bool // the script gives the window
	anyOptions bool // the script does not compare the options: <...>
}

// scriptFlags are the letters of the flags.
var scriptFlags = []struct {
	letter string
	flag   wire.TCPFlags
}{{"S", wire.SYN}, {"F", wire.FIN}, {"R", wire.RST}, {"P", wire.PSH}, {"E", wire.ECE}, {"W", wire.CWR}, {"U", wire.URG}, {".", wire.ACK}}

// parseScriptPacket parses a segment, such as
//
//	. 1:1001(1000) ack 1 win 500 <sack 2001:3001,nop,nop>
func parseScriptPacket(text string) (p scriptPacket, err error) {
	text, options, hasOptions := strings.Cut(text, "<")
	words := strings.Fields(text)
	if len(words) < 2 || len(words)%2 != 0 {
		return p, fmt.Errorf("a segment has flags, a range, and fields with values")
	}
	for _, letter := range words[0] {
		found := false
		for _, f := range scriptFlags {
			if f.letter == string(letter) {
				p.tcp.Flags |= f.flag
				found = true
			}
		}
		if !found {
			return p, fmt.Errorf("unknown flag %c", letter)
		}
	}
	var end uint32
	if _, err := fmt.Sscanf(words[1], "%d:%d(%d)", &p.tcp.Seq, &end, &p.length); err != nil || p.tcp.Seq+uint32(p.length) != end {
		return p, fmt.Errorf("%s is not first:end(length)", words[1])
	}
	for i := 2; i < len(words); i += 2 {
		size := map[string]int{"ack": 32, "win": 16}[words[i]]
		n, err := strconv.ParseUint(words[i+1], 10, max(size, 1))
		switch {
		case size == 0:
			return p, fmt.Errorf("unknown field %s", words[i])
		case err != nil:
			return p, err
		case words[i] == "ack":
			p.tcp.Ack = uint32(n)
		case words[i] == "win":
			p.tcp.Window, p.hasWindow = uint16(n), true
		}
	}
	if !hasOptions {
		return p, nil
	}
	return p, p.parseOptions(strings.TrimSuffix(strings.TrimSpace(options), ">"))
}

// parseOptions parses the options of a segment.
func (p *scriptPacket) parseOptions(text string) error {
	o := &p.tcp.TCPOptions
	for _, option := range strings.Split(text, ",") {
		words := strings.Fields(option)
		if len(words) == 0 {
			continue
		}
		var wrong error
		number := func(i, size int) uint64 {
			if i >= len(words) {
				wrong = fmt.Errorf("%s lacks a number", option)
				return 0
			}
			n, err := strconv.ParseUint(words[i], 10, size)
			wrong = errors.Join(wrong, err)
			return n
		}
		switch words[0] {
		case "...":
			p.anyOptions = true
		case "nop", "eol":
		case "mss":
			o.MSS = uint16(number(1, 16))
		case "wscale":
			o.HasWindowScale, o.WindowScale = true, uint8(number(1, 8))
		case "sackOK":
			o.SACKPermitted = true
		case "FO": // FO: a request; FO cookie: the valid cookie of the peer; FO 0102030405060708
			cookie, err := scriptCookie(words[1:])
			wrong = err
			o.FastOpen = cookie
		case "TS": // TS val 100 ecr 0
			o.HasTimestamps, o.TSVal, o.TSEcr = true, uint32(number(2, 32)), uint32(number(4, 32))
		case "sack":
			if len(words)-1 > len(o.SACK) {
				return fmt.Errorf("%s has too many ranges", option)
			}
			for _, block := range words[1:] {
				b := &o.SACK[o.NumSACK]
				if _, err := fmt.Sscanf(block, "%d:%d", &b.Left, &b.Right); err != nil {
					return fmt.Errorf("%s is not a range", block)
				}
				o.NumSACK++
			}
		default:
			return fmt.Errorf("unknown option %s", words[0])
		}
		if wrong != nil {
			return wrong
		}
	}
	return nil
}

// scriptKeys are the keys of listeners with Fast Open.
var scriptKeys = fastopen.NewKeys([]byte("0123456789abcdef"))

// scriptCookie parses the option FO.
func scriptCookie(words []string) (wire.FastOpenCookie, error) {
	switch {
	case len(words) == 0:
		c, _ := wire.NewFastOpenCookie(nil)
		return c, nil
	case words[0] == "cookie":
		return scriptKeys.Cookie(addrB, addrA), nil
	}
	b, err := hex.DecodeString(words[0])
	if err != nil {
		return wire.FastOpenCookie{}, err
	}
	c, ok := wire.NewFastOpenCookie(b)
	if !ok {
		return c, fmt.Errorf("%s is no cookie", words[0])
	}
	return c, nil
}

// String returns the segment in the notation of scripts.
func (p scriptPacket) String() string {
	var b strings.Builder
	for _, f := range scriptFlags {
		if p.tcp.Flags.Has(f.flag) {
			b.WriteString(f.letter)
		}
	}
	fmt.Fprintf(&b, " %d:%d(%d)", p.tcp.Seq, p.tcp.Seq+uint32(p.length), p.length)
	if p.tcp.Flags.Has(wire.ACK) {
		fmt.Fprintf(&b, " ack %d", p.tcp.Ack)
	}
	fmt.Fprintf(&b, " win %d", p.tcp.Window)
	if options := p.options(); len(options) > 0 {
		fmt.Fprintf(&b, " <%s>", strings.Join(options, ","))
	}
	return b.String()
}

func (p *scriptPacket) options() (list []string) {
	o := &p.tcp.TCPOptions
	if o.MSS != 0 {
		list = append(list, fmt.Sprintf("mss %d", o.MSS))
	}
	if o.SACKPermitted {
		list = append(list, "sackOK")
	}
	if o.HasTimestamps {
		list = append(list, fmt.Sprintf("TS val %d ecr %d", o.TSVal, o.TSEcr))
	}
	if o.HasWindowScale {
		list = append(list, fmt.Sprintf("wscale %d", o.WindowScale))
	}
	if o.FastOpen.Present() {
		list = append(list, fmt.Sprintf("FO %x", o.FastOpen.Bytes()))
	}
	for i, b := range o.SACK[:o.NumSACK] {
		before := ""
		if i == 0 {
			before = "sack "
		}
		list = append(list, fmt.Sprintf("%s%d:%d", before, b.Left, b.Right))
	}
	return list
}

// scriptCall is a system call of a script and its expected result.
type scriptCall struct {
	name   string
	args   []string
	result int
	errno  syscall.Errno
	wrong  error // the arguments that number could not parse
}

var scriptErrors = map[string]syscall.Errno{
	"EAGAIN": syscall.EAGAIN, "EINPROGRESS": syscall.EINPROGRESS, "EALREADY": syscall.EALREADY, "ECONNREFUSED": syscall.ECONNREFUSED,
	"ECONNRESET": syscall.ECONNRESET, "EPIPE": syscall.EPIPE, "ETIMEDOUT": syscall.ETIMEDOUT,
}

// parseScriptCall parses a call, such as
//
//	read(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)
func parseScriptCall(text string) (c scriptCall, err error) {
	call, result, ok := strings.Cut(text, " = ")
	name, args, open := strings.Cut(strings.TrimSpace(call), "(")
	words := strings.Fields(result)
	if !ok || !open || !strings.HasSuffix(args, ")") || len(words) == 0 {
		return c, fmt.Errorf("not a segment and not a call with a result")
	}
	c.name = name
	for _, arg := range strings.Split(strings.TrimSuffix(args, ")"), ",") {
		c.args = append(c.args, strings.Trim(arg, " []"))
	}
	if c.result, err = strconv.Atoi(words[0]); err != nil {
		return c, err
	}
	if c.result < 0 {
		if c.errno, ok = scriptErrors[words[len(words[:min(2, len(words))])-1]]; !ok {
			return c, fmt.Errorf("unknown error in %q", result)
		}
	}
	return c, nil
}

func (c *scriptCall) word(i int) string {
	if i >= len(c.args) {
		return ""
	}
	return c.args[i]
}

func (c *scriptCall) number(i int) int {
	n, err := strconv.Atoi(c.word(i))
	c.wrong = errors.Join(c.wrong, err)
	return n
}

// scriptTime parses the time of a line. last is the time of the line before it.
func scriptTime(text string, last time.Duration) (time.Duration, error) {
	number, relative := strings.CutPrefix(text, "+")
	if !relative {
		last = 0
	}
	seconds, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not a time", text)
	}
	return last + time.Duration(seconds*float64(time.Second)).Round(time.Microsecond), nil
}

// A mistake in a script is an error, and not a script that checks less.
func TestPacketScriptMistakes(t *testing.T) {
	for _, line := range []string{
		"+0 > . 1:1001(10) ack 1", "+0 < X 0:0(0)", "+0 > . 1:1(0) ack x", "+0 > . 1:1(0) seq 1", "+0 < . 1:1(0) ack 1 <what 3>", "+0 < . 1:1(0) <sack 3>",
		"+0 <", "x < S 0:0(0)", "+0 sleep(4) = 0", "+0 socket(...) = x", "+0 socket(...)", "+0 close(9) = 0",
		"+0 connect(3, ..., ...) = -1 EWHAT", "+0 setsockopt(3, SOL_TCP, TCP_WHAT, [1], 4) = 0", "+0 connect(3, ..., ...) = 0",
		"+0 > . 1:1(0) ack", "+0 < . 1:1(0) win 70000", "+0 < S 0:0(0) <mss abc>", "+0 < S 0:0(0) <mss 70000>", "+0 < S 0:0(0) <TS val 1x ecr>", "+0 < . 1:1(0) <sack 1:2 3:4 5:6 7:8 9:10>",
		"+0 < S 0:0(0) <FO 0x>", "+0 < S 0:0(0) <FO 01>",
		"+0 setsockopt(3, SOL_TCP, TCP_NODELAY, [x], 4) = 0", "+0 listen(3, x) = 0", "+0 read(3, ..., 10) = 0", "+0 accept(3, ..., ...) = 4", "+0 shutdown(3, SHUT_RD) = 0",
	} {
		byHand(t, func(t *testing.T, w *peer) {
			r := &scriptRun{w: w, t: t, begin: time.Now(), files: map[int]*scriptFile{3: {}}, here: 8080}
			if r.line(line) == nil {
				t.Errorf("%s: no error", line)
			}
			r.files[3].abort()
		})
	}
}
