package netlink

import (
	"encoding/binary"

	"loam/abi/linux"
)

// Rules of policy routing (ip-rule(8), linux/fib_rules.h). The stack first looks for an address of the machine, and then in its routes. The
// rules describe this as Linux's default rules do; others cannot be added. The table default has no routes.

// rule is a rule: packets with a priority use a table.
type rule struct {
	family   byte
	table    byte
	priority uint32
}

var rules = []rule{
	{linux.AF_INET, linux.RT_TABLE_LOCAL, 0}, {linux.AF_INET, linux.RT_TABLE_MAIN, 32766}, {linux.AF_INET, linux.RT_TABLE_DEFAULT, 32767},
	{linux.AF_INET6, linux.RT_TABLE_LOCAL, 0}, {linux.AF_INET6, linux.RT_TABLE_MAIN, 32766},
}

// describeRules answers RTM_GETRULE with NLM_F_DUMP. It returns EAFNOSUPPORT for a family without rules.
func describeRules(r *reply, request []byte) linux.Errno {
	r.multi = true
	family := byte(linux.AF_UNSPEC)
	if len(request) > 0 {
		family = request[0]
	}
	if family != linux.AF_UNSPEC && dumpFamily(request) == linux.AF_UNSPEC {
		return linux.EAFNOSUPPORT
	}
	for _, x := range rules {
		if family == linux.AF_UNSPEC || family == x.family {
			x.describe(r)
		}
	}
	return 0
}

// describe appends an RTM_NEWRULE.
func (x rule) describe(r *reply) {
	b, end := r.message(linux.RTM_NEWRULE)
	defer end()
	word := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	*b = append(*b, x.family, 0, 0, 0, x.table, 0, 0, linux.FR_ACT_TO_TBL, 0, 0, 0, 0)
	Attribute(b, linux.FRA_TABLE, word(uint32(x.table)))
	Attribute(b, linux.FRA_SUPPRESS_PREFIXLEN, word(^uint32(0)))
	Attribute(b, linux.FRA_PROTOCOL, []byte{linux.RTPROT_KERNEL})
	if x.priority != 0 {
		Attribute(b, linux.FRA_PRIORITY, word(x.priority))
	}
}
