package wire

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
)

var (
	// The query of dig a.loam.test, with EDNS and a cookie, and the reply of dnsmasq.
	capturedDNSQuery = unhex(`0a40 0120 0001 0000 0000 0001 01 61 04 6c6f616d 04 74657374 00 0001 0001
		00 0029 04d0 00000000 000c 000a 0008 acea4c7d21afbd61`)
	capturedDNSAnswer = unhex(`0a40 8580 0001 0001 0000 0001 01 61 04 6c6f616d 04 74657374 00 0001 0001
		c00c 0001 0001 00000000 0004 c0000207 00 0029 04d0 00000000 0000`)
	capturedDNSAnswer6 = unhex(`3c44 8580 0001 0001 0000 0001 01 61 04 6c6f616d 04 74657374 00 001c 0001
		c00c 001c 0001 00000000 0010 20010db8000000000000000000000007 00 0029 04d0 00000000 0000`)
	capturedDNSAlias = unhex(`0d17 8580 0001 0002 0000 0001 03 777777 04 6c6f616d 04 74657374 00 0001 0001
		c00c 0005 0001 00000000 000d 01 62 04 6c6f616d 04 74657374 00
		c02b 0001 0001 00000000 0004 c0000208 00 0029 04d0 00000000 0000`)
	// A query without EDNS, and the refusal of a server that forwards no queries.
	capturedDNSPlain   = unhex(`bb3c 0120 0001 0000 0000 0000 04 6e6f7065 07 6578616d706c65 00 0001 0001`)
	capturedDNSRefusal = unhex(`bb3c 8185 0001 0000 0000 0000 04 6e6f7065 07 6578616d706c65 00 0001 0001`)
)

func TestDNSOfACapturedQuery(t *testing.T) {
	m, err := ParseDNS(capturedDNSQuery)
	if err != nil {
		t.Fatal(err)
	}
	if want := (DNSQuestion{dnsName("a.loam.test"), DNSTypeA, DNSClassIN}); m.Question != want {
		t.Errorf("question %+v, want %+v", m.Question, want)
	}
	if m.ID != 0x0a40 || m.Flags != DNSRecursionDesired|DNSAuthenticData || m.Flags.Opcode() != 0 {
		t.Errorf("identifier %#x, flags %#x", m.ID, m.Flags)
	}
	if !m.EDNS || m.UDPLimit() != 1232 {
		t.Errorf("EDNS %v, takes %d bytes, want 1232", m.EDNS, m.UDPLimit())
	}
	plain, err := ParseDNS(capturedDNSPlain)
	if err != nil || plain.EDNS || plain.UDPLimit() != 512 {
		t.Errorf("without EDNS: takes %d bytes, error %v; want 512", plain.UDPLimit(), err)
	}
}

// answers returns the names and addresses in a message's answers.
func answers(m *DNS) (names []string, addrs []netip.Addr) {
	m.EachAnswer(func(r DNSRecord) bool {
		names = append(names, r.Name.String())
		addrs = append(addrs, r.Addr())
		return true
	})
	return names, addrs
}

func TestDNSOfCapturedAnswers(t *testing.T) {
	for _, test := range []struct {
		b     []byte
		names []string
		addrs []netip.Addr
	}{
		{capturedDNSAnswer, []string{"a.loam.test"}, []netip.Addr{addr("192.0.2.7")}},
		{capturedDNSAnswer6, []string{"a.loam.test"}, []netip.Addr{addr("2001:db8::7")}},
		{capturedDNSAlias, []string{"www.loam.test", "b.loam.test"}, []netip.Addr{{}, addr("192.0.2.8")}},
		{capturedDNSRefusal, nil, nil},
	} {
		m, err := ParseDNS(test.b)
		if err != nil {
			t.Errorf("%v: %v", test.names, err)
			continue
		}
		names, addrs := answers(&m)
		if !slices.Equal(names, test.names) || !slices.Equal(addrs, test.addrs) {
			t.Errorf("answers %v %v, want %v %v", names, addrs, test.names, test.addrs)
		}
	}
	m, _ := ParseDNS(capturedDNSAlias)
	n := 0
	m.EachAnswer(func(DNSRecord) bool { n++; return false })
	if n != 1 {
		t.Errorf("%d answers after false, want 1", n)
	}
}

// Loam's reply is identical to that of dnsmasq to the same question.
func TestDNSAnswerLikeTheCapturedOne(t *testing.T) {
	m, _ := ParseDNS(capturedDNSQuery)
	if got := m.AppendAnswer(nil, DNSAuthoritative, 0, addr("192.0.2.7")); !bytes.Equal(got, capturedDNSAnswer) {
		t.Errorf("answer % x, want % x", got, capturedDNSAnswer)
	}
	m, _ = ParseDNS(capturedDNSPlain)
	if got := m.AppendReply(nil, 0, DNSRefused); !bytes.Equal(got, capturedDNSRefusal) {
		t.Errorf("refusal % x, want % x", got, capturedDNSRefusal)
	}
}

func TestDNSReplies(t *testing.T) {
	q := DNSQuestion{dnsName("a.loam.test"), DNSTypeAAAA, DNSClassIN}
	query, err := ParseDNS(AppendDNSQuery(nil, 7, &q))
	if err != nil || query.ID != 7 || query.Question != q || query.Flags != DNSRecursionDesired {
		t.Fatalf("query parsed as %+v, error %v", query, err)
	}
	for _, rcode := range []DNSRCode{DNSNoError, DNSFormErr, DNSServFail, DNSNXDomain, DNSNotImp, DNSRefused} {
		m, err := ParseDNS(query.AppendReply(nil, 0, rcode))
		want := DNSResponse | DNSRecursionDesired | DNSRecursionAvailable | DNSFlags(rcode)
		if err != nil || m.ID != 7 || m.Question != q || m.Flags != want || m.Flags.RCode() != rcode {
			t.Errorf("code %d: %+v, error %v", rcode, m, err)
		}
	}
	m, err := ParseDNS(query.AppendReply(nil, DNSTruncated, DNSNoError))
	if err != nil || m.Flags&DNSTruncated == 0 {
		t.Errorf("truncated: flags %#x, error %v", m.Flags, err)
	}
	// Build the reply in a buffer that starts with the two length bytes of DNS over TCP (RFC 1035 section 4.2.2).
	want := []netip.Addr{addr("2001:db8::1"), addr("::ffff:192.0.2.1")}
	m, err = ParseDNS(query.AppendAnswer([]byte{0, 0}, 0, 60, want...)[2:])
	if _, got := answers(&m); err != nil || !slices.Equal(got, want) {
		t.Errorf("answers %v, error %v; want %v", got, err, want)
	}
	m.EachAnswer(func(r DNSRecord) bool {
		if r.Name != q.Name || r.TTL != 60 {
			t.Errorf("answer for %q with TTL %d, want %q and 60", r.Name, r.TTL, q.Name)
		}
		return true
	})
}

func TestDNSReplyToWhatCouldNotBeParsed(t *testing.T) {
	b := patch(capturedDNSPlain, 4, 0, 2) // a header that states two questions (RFC 9619 allows one)
	m, err := ParseDNS(b)
	if err != ErrField {
		t.Fatalf("error %v, want %v", err, ErrField)
	}
	got := m.AppendReply(nil, 0, DNSFormErr)
	if want := unhex("bb3c 8181 0000 0000 0000 0000"); !bytes.Equal(got, want) {
		t.Errorf("reply % x, want % x", got, want)
	}
}

func TestDNSRefuses(t *testing.T) {
	q, a := capturedDNSQuery, capturedDNSAnswer
	const record = 12 + 13 + 4 // offset of the first record in both messages
	testRefusals(t, func(b []byte) error { _, err := ParseDNS(b); return err }, []refusal{
		{"nothing", nil, ErrShort},
		{"one byte short of a header", q[:11], ErrShort},
		{"a question that is not there", q[:12], ErrLength},
		{"a name cut off", q[:20], ErrLength},
		{"a question cut off", q[:record-1], ErrShort},
		{"two questions", patch(q, 4, 0, 2), ErrField},
		{"a question that points to itself", patch(q, 12, 0xc0, 12), ErrField},
		{"a record that is not there", q[:record], ErrLength},
		{"a record cut off", q[:record+10], ErrShort},
		{"more data than there is", q[:len(q)-1], ErrLength},
		{"more records than there are", patch(capturedDNSPlain, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), ErrLength},
		{"an A record of three bytes", patch(a, record+11, 3), ErrLength},
		{"an AAAA record of four bytes", patch(a, record+3, 28), ErrLength},
		{"OPT among the answers", patch(q, 7, 1, 0, 0, 0, 0), ErrField},
		{"OPT of another name than the root", patch(a, record+3, 41, 0, 1, 0, 0, 0, 0), ErrField},
		{"two OPT records", append(patch(q, 11, 2), q[record:]...), ErrField},
		{"an answer that points to itself", patch(a, record, 0xc0, record), ErrField},
	})
	m, err := ParseDNS(append(q[:len(q):len(q)], 1, 2, 3))
	if err != nil || !m.EDNS {
		t.Errorf("bytes behind the last record: error %v", err)
	}
	m, _ = ParseDNS(patch(a, 11, 9))
	if names, _ := answers(&m); names != nil {
		t.Errorf("a message that was refused has answers: %v", names)
	}
}

func FuzzDNS(f *testing.F) {
	for _, b := range [][]byte{
		capturedDNSQuery, capturedDNSAnswer, capturedDNSAnswer6, capturedDNSAlias, capturedDNSRefusal,
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseDNS(b)
		m.EachAnswer(func(r DNSRecord) bool { r.Addr(); return true })
		if err != nil && len(b) < DNSHeaderLen {
			return
		}
		reply, err := ParseDNS(m.AppendAnswer(nil, 0, 1, addr("192.0.2.1"), addr("::1")))
		if m.Question.Name.IsZero() {
			return // the message has no name to which the answers could point
		}
		if err != nil || reply.ID != m.ID || reply.Question != m.Question || reply.EDNS != m.EDNS {
			t.Fatalf("%+v was answered by %+v, error %v", m, reply, err)
		}
	})
}
