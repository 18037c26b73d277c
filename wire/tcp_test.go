package wire

import (
	"bytes"
	"testing"
)

var (
	capturedSYN    = unhex(`b52a 0050 97b84f22 00000000 a0c2 faf0 6a15 0000 020405b4 0402080a26d406fd00000000 0103030a`)
	capturedSYNACK = unhex(`0050 b52a 89f45a7d 97b84f23 a052 fe88 607c 0000 020405b4 0402080a0fa6125826d406fd 0103030a`)
	capturedACK    = unhex(`b52a 0050 97b84f23 89f45a7e 8010 003f 8dd5 0000 0101080a26d406fd0fa61258`)
	capturedRST    = unhex(`0051 a4d8 00000000 98714671 5014 0000 13b4 0000`)
	capturedData   = unhex(`9466 0050 cee8769e 39913658 8018 003f e921 0000 0101080a16a4e9d3130fd6be 68656c6c6f2c206c6f616d`)
	// The answer to a segment that had already arrived: a duplicate SACK (RFC 2883).
	capturedSACK = unhex(`0050 9466 39913658 cee876ae b010 0040 5cc8 0000
		0101080a130fe18916a4eaff 0101050acee8769ecee876a9`)
)

var tcpClient, tcpServer = addr("10.0.2.15"), addr("10.0.2.2")

func TestTCPOfCapturedSegments(t *testing.T) {
	for _, test := range []struct {
		name    string
		b       []byte
		want    TCP
		payload string
	}{
		{"SYN, offering ECN", capturedSYN, TCP{
			SrcPort: 46378, DstPort: 80, Seq: 0x97b84f22, Flags: SYN | ECE | CWR, Window: 64240,
			TCPOptions: TCPOptions{
				MSS: 1460, SACKPermitted: true, HasTimestamps: true, TSVal: 0x26d406fd,
				HasWindowScale: true, WindowScale: 10,
			},
		}, ""},
		{"SYN and ACK, accepting ECN", capturedSYNACK, TCP{
			SrcPort: 80, DstPort: 46378, Seq: 0x89f45a7d, Ack: 0x97b84f23, Flags: SYN | ACK | ECE, Window: 65160,
			TCPOptions: TCPOptions{
				MSS: 1460, SACKPermitted: true, HasTimestamps: true, TSVal: 0x0fa61258, TSEcr: 0x26d406fd,
				HasWindowScale: true, WindowScale: 10,
			},
		}, ""},
		{"ACK", capturedACK, TCP{
			SrcPort: 46378, DstPort: 80, Seq: 0x97b84f23, Ack: 0x89f45a7e, Flags: ACK, Window: 63,
			TCPOptions: TCPOptions{HasTimestamps: true, TSVal: 0x26d406fd, TSEcr: 0x0fa61258},
		}, ""},
		{"RST", capturedRST, TCP{SrcPort: 81, DstPort: 42200, Ack: 0x98714671, Flags: RST | ACK}, ""},
		{"data", capturedData, TCP{
			SrcPort: 37990, DstPort: 80, Seq: 0xcee8769e, Ack: 0x39913658, Flags: PSH | ACK, Window: 63,
			TCPOptions: TCPOptions{HasTimestamps: true, TSVal: 0x16a4e9d3, TSEcr: 0x130fd6be},
		}, "hello, loam"},
		{"duplicate SACK", capturedSACK, TCP{
			SrcPort: 80, DstPort: 37990, Seq: 0x39913658, Ack: 0xcee876ae, Flags: ACK, Window: 64,
			TCPOptions: TCPOptions{
				HasTimestamps: true, TSVal: 0x130fe189, TSEcr: 0x16a4eaff,
				NumSACK: 1, SACK: [4]SACKBlock{{0xcee8769e, 0xcee876a9}},
			},
		}, ""},
	} {
		src, dst := tcpClient, tcpServer
		if test.want.SrcPort < 1024 {
			src, dst = dst, src
		}
		h, payload, err := ParseTCP(test.b)
		if err != nil || h != test.want || string(payload) != test.payload {
			t.Errorf("%s: parsed %+v, %q, error %v; want %+v", test.name, h, payload, err, test.want)
			continue
		}
		if !TCPChecksumOK(test.b, src, dst) {
			t.Errorf("%s: the captured checksum was refused", test.name)
		}
		// Loam writes options in the order that Linux does, so the bytes agree.
		b := append(make([]byte, h.Len()), payload...)
		h.Put(b)
		PutTCPChecksum(b, src, dst)
		if !bytes.Equal(b, test.b) {
			t.Errorf("%s: put % x, want % x", test.name, b, test.b)
		}
	}
}

func TestTCPChecksumDetectsEveryByte(t *testing.T) {
	for i := range capturedData {
		if TCPChecksumOK(patch(capturedData, i, ^capturedData[i]), tcpClient, tcpServer) {
			t.Errorf("byte %d changed, and the checksum still right", i)
		}
	}
	if TCPChecksumOK(capturedData, tcpClient, tcpClient) {
		t.Error("another address, and the checksum still right")
	}
}

// RFC 9293 section 3.1: reserved bits "must be ignored in received segments".
func TestTCPReservedBitsAreIgnored(t *testing.T) {
	h, _, err := ParseTCP(patch(capturedRST, 12, 0x5e))
	if want, _, _ := ParseTCP(capturedRST); err != nil || h != want {
		t.Errorf("parsed %+v, error %v; want %+v", h, err, want)
	}
	b := make([]byte, TCPMinLen)
	h.Flags = 0xffff
	h.Put(b)
	if b[12] != 0x51 || b[13] != 0xff {
		t.Errorf("all flags are written as %02x%02x, want 51ff: nothing outside of the flags", b[12], b[13])
	}
}

func TestTCPFlags(t *testing.T) {
	for want, f := range map[string]TCPFlags{
		"": 0, "F": FIN, "SA": SYN | ACK, "FSRPAUECN": allFlags, "SECN": SYN | ECE | CWR | AE,
	} {
		if got := f.String(); got != want {
			t.Errorf("flags %#x are %q, want %q", uint16(f), got, want)
		}
	}
	if f := SYN | ACK; !f.Has(SYN) || !f.Has(SYN|ACK) || f.Has(SYN|FIN) || !f.Has(0) {
		t.Error("Has wants all of the flags")
	}
}

func TestTCPRefuses(t *testing.T) {
	testRefusals(t, func(b []byte) error { _, _, err := ParseTCP(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"one byte short of a header", capturedRST[:TCPMinLen-1], ErrShort},
		{"a data offset of 16", patch(capturedRST, 12, 0x40), ErrLength},
		{"a data offset of 0", patch(capturedRST, 12, 0), ErrLength},
		{"options beyond the segment", patch(capturedRST, 12, 0x60), ErrLength},
		{"options cut off", capturedACK[:len(capturedACK)-1], ErrLength},
		{"an option of length 0", patch(capturedACK, 20, 1, 1, 8, 0), ErrOption},
	})
}

func FuzzTCP(f *testing.F) {
	for _, b := range [][]byte{capturedSYN, capturedSYNACK, capturedACK, capturedRST, capturedData, capturedSACK} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := ParseTCP(b)
		if err != nil {
			return
		}
		if !EachTCPOption(RawTCPOptions(b), func(TCPOption, []byte) bool { return true }) {
			t.Fatal("ParseTCP accepts options that EachTCPOption finds malformed")
		}
		again := append(make([]byte, h.Len()), payload...)
		h.Put(again)
		PutTCPChecksum(again, tcpClient, tcpServer)
		got, rest, err := ParseTCP(again)
		leaveOutSACK(&h.TCPOptions)
		if err != nil || got != h || !bytes.Equal(rest, payload) || !TCPChecksumOK(again, tcpClient, tcpServer) {
			t.Fatalf("%+v became %+v, error %v", h, got, err)
		}
	})
}

// leaveOutSACK removes the SACK blocks that Len and Put omit. Loam aligns its options, so not all blocks of a header
// without padding may fit.
func leaveOutSACK(o *TCPOptions) {
	others := *o
	others.NumSACK = 0
	o.NumSACK = min(o.NumSACK, uint8((40-others.Len()-4)/8))
	for i := range o.SACK[o.NumSACK:] {
		o.SACK[int(o.NumSACK)+i] = SACKBlock{}
	}
}
