package tcp

// ICMPKind is what an ICMP message about a segment of ours says, as TCP sees it.
type ICMPKind uint8

const (
	ICMPUnreachable ICMPKind = iota // soft: net or host unreachable, time exceeded, source quench
	ICMPRefused                     // hard: protocol or port unreachable, prohibited
	ICMPTooBig                      // fragmentation needed, packet too big
)
