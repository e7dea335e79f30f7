package service

import (
	"testing"
	"testing/fstest"
)

func TestGroupLimit(t *testing.T) {
	t.Parallel()
	const mixed = "9:name=systemd:/\n4:memory:/a/b\n1:cpu:/\n0::/\n"
	for name, test := range map[string]struct {
		process string
		groups  map[string]string
		want    int64
	}{
		"container, version 2":    {"0::/\n", map[string]string{"memory.max": "536870912\n"}, 512 << 20},
		"unit, version 2":         {"0::/system.slice/e.service\n", map[string]string{"system.slice/e.service/memory.max": "1000\n"}, 1000},
		"the tighter one around":  {"0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "5000\n", "memory.max": "9000"}, 5000},
		"version 1":               {mixed, map[string]string{"memory/a/b/memory.limit_in_bytes": "7000\n"}, 7000},
		"host's path, version 1":  {mixed, map[string]string{"memory/memory.limit_in_bytes": "8000\n"}, 8000},
		"no limit, version 1":     {mixed, map[string]string{"memory/a/b/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"no limit, version 2":     {"0::/\n", map[string]string{"memory.max": "max\n"}, 0},
		"no control groups":       {"", nil, 0},
		"damaged":                 {"0\nx:y\n0::/../..\n", map[string]string{"memory.max": "x"}, 0},
		"a path that leads aside": {"0::/../a\n", map[string]string{"a/memory.max": "3000"}, 3000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			groups := fstest.MapFS{}
			for file, text := range test.groups {
				groups[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := groupLimit(fstest.MapFS{"cgroup": {Data: []byte(test.process)}}, groups); got != test.want {
				t.Errorf("the limit is %d, want %d", got, test.want)
			}
		})
	}
}
