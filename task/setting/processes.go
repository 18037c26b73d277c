package setting

import (
	"math"
	"strings"

	"loam/abi/linux"
	"loam/task/core"
	"loam/task/family"
)

// mostPattern is the length of the longest pattern in bytes (CORENAME_MAX_SIZE of Linux, without the NUL).
const mostPattern = 127

// Processes returns the settings of processes: their IDs, and the names of core dumps. A pattern that begins with "|", which names a
// program on Linux, is refused.
func Processes(t *family.Tree, c *core.Settings) map[string]Setting {
	pattern := Text(mostPattern, c.Pattern, func(text string) error {
		if strings.HasPrefix(text, "|") {
			return linux.EINVAL
		}
		c.SetPattern(text)
		return nil
	})
	return map[string]Setting{
		"sys/kernel/pid_max":       Integer(family.LeastMost, int64(family.MaxPID), t.Most, t.SetMost),
		"sys/kernel/core_pattern":  pattern,
		"sys/kernel/core_uses_pid": Integer(math.MinInt32, math.MaxInt32, c.UsesPID.Load, c.UsesPID.Store),
	}
}
