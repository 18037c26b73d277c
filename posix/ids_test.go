package posix

import (
	"testing"

	"loam/abi/linux"
)

// IDs cannot change; the errors are those of Linux for an unprivileged process.
func TestIdentity(t *testing.T) {
	const none = ^uint32(0)
	p := New(Options{Credentials: Credentials{PID: 7, UID: 1000, GID: 100}})
	for what, c := range map[string]struct{ got, want Errno }{
		"own user":            {p.SetUserID(1000), 0},
		"root":                {p.SetUserID(0), linux.EPERM},
		"no user":             {p.SetUserID(none), linux.EINVAL},
		"own group":           {p.SetGroupID(100), 0},
		"another group":       {p.SetGroupID(1000), linux.EPERM},
		"own or unchanged":    {p.SetUserIDs(none, 1000, none), 0},
		"one is another":      {p.SetUserIDs(1000, 1000, 0), linux.EPERM},
		"groups unchanged":    {p.SetGroupIDs(none, none), 0},
		"leader of its group": {p.SetGroup(0, 0, 7), 0},
		"leader of another":   {p.SetGroup(0, 0, 5), linux.EPERM},
		"of another process":  {p.SetGroup(8, 0, 7), linux.ESRCH},
		"below all groups":    {p.SetGroup(0, -1, 7), linux.EINVAL},
		"the same priority":   {p.SetPriority(0, 0, 5, 5), 0},
		"a nicer one":         {p.SetPriority(0, 7, 100, 19), 0},
		"a less nice one":     {p.SetPriority(0, 0, 4, 5), linux.EACCES},
		"of another's":        {p.SetPriority(0, 8, 5, 5), linux.ESRCH},
		"of what is not":      {p.SetPriority(3, 0, 5, 5), linux.EINVAL},
		"its capabilities":    {p.SetCapabilities(capBind|capRaw, capBind|capRaw, 0), 0},
		"all of them":         {p.SetCapabilities(^uint64(0), ^uint64(0), 0), linux.EPERM},
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
		{linux.PR_SET_NO_NEW_PRIVS, 1, 0, 0},
		{linux.PR_SET_NO_NEW_PRIVS, 0, -1, linux.EINVAL},
		{linux.PR_GET_NO_NEW_PRIVS, 0, 1, 0},
		{linux.PR_SET_DUMPABLE, 2, -1, linux.EINVAL},
		{linux.PR_SET_PDEATHSIG, 15, 0, 0},
		{linux.PR_SET_PDEATHSIG, 65, -1, linux.EINVAL},
		{linux.PR_GET_KEEPCAPS, 0, 0, 0},
		{linux.PR_SET_KEEPCAPS, 1, 0, 0},
		{linux.PR_GET_KEEPCAPS, 0, 1, 0},
		{linux.PR_SET_KEEPCAPS, 2, -1, linux.EINVAL},
		{linux.PR_CAPBSET_READ, 10, 1, 0},
		{linux.PR_CAPBSET_READ, 21, 0, 0},
		{linux.PR_CAPBSET_READ, 100, -1, linux.EINVAL},
		{12345, 0, -1, linux.EINVAL},
	} {
		if got, errno := p.Prctl(c.option, c.arg); got != c.want || errno != c.errno {
			t.Errorf("prctl %d, %d: %d, %v", c.option, c.arg, got, errno)
		}
	}
}
