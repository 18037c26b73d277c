package posix

import (
	"syscall"
	"testing"
)

// A process stays who it is: what Linux says to one without privilege.
func TestIdentity(t *testing.T) {
	const none = ^uint32(0)
	p := New(Options{Credentials: Credentials{PID: 7, UID: 1000, GID: 100}})
	for what, c := range map[string]struct{ got, want Errno }{
		"own user":            {p.SetUserID(1000), 0},
		"root":                {p.SetUserID(0), syscall.EPERM},
		"no user":             {p.SetUserID(none), syscall.EINVAL},
		"own group":           {p.SetGroupID(100), 0},
		"another group":       {p.SetGroupID(1000), syscall.EPERM},
		"own or unchanged":    {p.SetUserIDs(none, 1000, none), 0},
		"one is another":      {p.SetUserIDs(1000, 1000, 0), syscall.EPERM},
		"groups unchanged":    {p.SetGroupIDs(none, none), 0},
		"leader of its group": {p.SetGroup(0, 0, 7), 0},
		"leader of another":   {p.SetGroup(0, 0, 5), syscall.EPERM},
		"of another process":  {p.SetGroup(8, 0, 7), syscall.ESRCH},
		"below all groups":    {p.SetGroup(0, -1, 7), syscall.EINVAL},
		"the same priority":   {p.SetPriority(0, 0, 5, 5), 0},
		"a nicer one":         {p.SetPriority(0, 7, 100, 19), 0},
		"a less nice one":     {p.SetPriority(0, 0, 4, 5), syscall.EACCES},
		"of another's":        {p.SetPriority(0, 8, 5, 5), syscall.ESRCH},
		"of what is not":      {p.SetPriority(3, 0, 5, 5), syscall.EINVAL},
		"its capabilities":    {p.SetCapabilities(capBind|capRaw, capBind|capRaw, 0), 0},
		"all of them":         {p.SetCapabilities(^uint64(0), ^uint64(0), 0), syscall.EPERM},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	for _, c := range []struct {
		option int
		arg    uint64
		want   int
		errno  Errno
	}{
		{prSetNoNewPrivs, 1, 0, 0},
		{prSetNoNewPrivs, 0, -1, syscall.EINVAL},
		{prGetNoNewPrivs, 0, 1, 0},
		{prSetDumpable, 2, -1, syscall.EINVAL},
		{prSetDeathSignal, 15, 0, 0},
		{prSetDeathSignal, 65, -1, syscall.EINVAL},
		{prGetKeepCaps, 0, 0, 0},
		{prSetKeepCaps, 1, 0, 0},
		{prGetKeepCaps, 0, 1, 0},
		{prSetKeepCaps, 2, -1, syscall.EINVAL},
		{prCapbsetRead, 10, 1, 0},
		{prCapbsetRead, 21, 0, 0},
		{prCapbsetRead, 100, -1, syscall.EINVAL},
		{12345, 0, -1, syscall.EINVAL},
	} {
		if got, errno := p.Prctl(c.option, c.arg); got != c.want || errno != c.errno {
			t.Errorf("prctl %d, %d: %d, %v", c.option, c.arg, got, errno)
		}
	}
}
