package settings

import (
	"path/filepath"
	"testing"
)

func TestAddresses(t *testing.T) {
	here, err := filepath.Abs("run/m")
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]string{
		":9105": "127.0.0.1:9105", "0.0.0.0:9105": "0.0.0.0:9105", "[::]:9105": "[::]:9105", "localhost:0": "localhost:0", "[::1]:65535": "[::1]:65535",
		"unix:/run/x": "unix:/run/x", "unix:run/m": "unix:" + here,
		"": "", "9105": "", ":": "", ":http": "", ":65536": "", ":-1": "", ":+1": "", ":09105": "", "h:1:2": "", "::1": "", "http://h:1": "", "unix:": "",
	} {
		r, err := Resolve(Given{"metrics-addr": {raw}}, nil)
		if (err != nil) != (want == "") || err == nil && r.MetricsAddr != want {
			t.Errorf("%q is %q (%v), want %q", raw, r.MetricsAddr, err, want)
		}
	}
}
