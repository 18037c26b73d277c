package wire

import "testing"

// The stack parses and writes headers for every packet, so this must not allocate.
func TestNoAllocation(t *testing.T) {
	frame := make([]byte, 2048)
	src, dst := addr("10.0.2.15"), addr("10.0.2.2")
	eth, _, _ := ParseEthernet(capturedBroadcast)
	arp, _ := ParseARP(capturedARPReply)
	ip, _, _ := ParseIPv4(capturedRecordRoute)
	tcp, _, _ := ParseTCP(capturedSACK)
	udp, _, _ := ParseUDP(capturedUDP)
	icmp, _, _ := ParseICMPv4(capturedEcho)
	ip6, _, _ := ParseIPv6(ipv6Echo)
	icmp6, _, _ := ParseICMPv6(echo6)
	report, _ := ParseGroupMessage(MLD, mldv2Report)
	redirect, _ := ParseRedirect(redirect6)
	mpls, _, _ := ParseMPLS(mplsInner)
	vxlan, _, _ := ParseVXLAN(vxlanHeader)
	gre, _, _ := ParseGRE(greFull)
	offer, _ := ParseDHCPv4(capturedOffer)
	query, _ := ParseDNS(capturedDNSQuery)
	alias, _ := ParseDNS(capturedDNSAlias)
	for name, f := range map[string]func(){
		"ParseEthernet":   func() { ParseEthernet(capturedBroadcast) },
		"Ethernet.Put":    func() { eth.Put(frame) },
		"ParseARP":        func() { ParseARP(capturedARPReply) },
		"ARP.Put":         func() { arp.Put(frame) },
		"ParseIPv4":       func() { ParseIPv4(capturedRecordRoute) },
		"IPv4.Put":        func() { ip.Put(frame) },
		"IPv4.EachOption": func() { ip.EachOption(func(IPv4Option, []byte) bool { return true }) },
		"IPv4ChecksumOK":  func() { IPv4ChecksumOK(capturedRecordRoute) },
		"ParseTCP":        func() { ParseTCP(capturedSACK) },
		"TCP.Put":         func() { tcp.Put(frame) },
		"EachTCPOption":   func() { EachTCPOption(RawTCPOptions(capturedSACK), func(TCPOption, []byte) bool { return true }) },
		"TCPChecksumOK":   func() { TCPChecksumOK(capturedSACK, src, dst) },
		"ParseUDP":        func() { ParseUDP(capturedUDP) },
		"UDP.Put":         func() { udp.Put(frame) },
		"PutUDPChecksum":  func() { PutUDPChecksum(frame[:100], src, dst) },
		"UDPLite": func() {
			h := UDPLite{Coverage: 8}
			h.Put(frame)
			PutUDPLiteChecksum(frame[:100], src, dst)
			ParseUDPLite(frame[:100])
		},
		"ParseICMPv4":     func() { ParseICMPv4(capturedEcho) },
		"ICMPv4.Put":      func() { icmp.Put(frame) },
		"ParseIPv6":       func() { ParseIPv6(ipv6Echo) },
		"IPv6.Put":        func() { ip6.Put(frame) },
		"ParseICMPv6":     func() { ParseICMPv6(echo6) },
		"ICMPv6.Put":      func() { icmp6.Put(frame) },
		"ParseGroupQuery": func() { ParseGroupMessage(MLD, mldv1Query) },
		"GroupReport.Put": func() { report.Put(frame) },
		"ParseRedirect":   func() { ParseRedirect(quoting6) },
		"Redirect.Put":    func() { redirect.Put(frame) },
		"ParseMPLS":       func() { ParseMPLS(mplsInner) },
		"MPLS.Put":        func() { mpls.Put(frame) },
		"ParseVXLAN":      func() { ParseVXLAN(vxlanHeader) },
		"VXLAN.Put":       func() { vxlan.Put(frame) },
		"ParseGRE":        func() { ParseGRE(greFull) },
		"GRE.Put":         func() { gre.Put(frame) },
		"ParseDHCPv4":     func() { ParseDHCPv4(capturedOffer) },
		"DHCPv4.Put":      func() { offer.Put(frame) },
		"DHCPv4.Get":      func() { offer.Get(DHCPv4OptDNS) },
		"ParseDNS":        func() { ParseDNS(capturedDNSAlias) },
		"DNS.EachAnswer":  func() { alias.EachAnswer(func(DNSRecord) bool { return true }) },
		"DNS.AppendReply": func() { query.AppendReply(frame[:0], 0, DNSRefused) },
		"a refusal":       func() { ParseTCP(nil) },
		"another":         func() { ParseDHCPv4(nil) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
