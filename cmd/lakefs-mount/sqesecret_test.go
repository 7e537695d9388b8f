package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/mounttest"
	"github.com/lakefs-mount/lakefs-mount/internal/testing/s3test"
)

// TestEachTableHasTheCredentialsOfItsSecret: sqe.secret names a profile of the
// settings file. One whose key the store does not know fails that table alone, and a name
// that the file does not have is a load error that names it.
func TestEachTableHasTheCredentialsOfItsSecret(t *testing.T) {
	server := s3test.Versity(t)
	other := server.Bucket(t)
	dir := t.TempDir()
	config, credentials := filepath.Join(dir, "lake.yaml"), filepath.Join(dir, "credentials")
	for path, text := range map[string]string{
		config: "secrets:\n  partner: {profile: right}\n  stranger: wrong\n",
		credentials: "[right]\naws_access_key_id = " + server.Access + "\naws_secret_access_key = " + server.Secret + "\n" +
			"[wrong]\naws_access_key_id = AKIAOFNOBODY00000000\naws_secret_access_key = hidden\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := sales(t)
	o.S3, o.Env = true, []string{"AWS_SHARED_CREDENTIALS_FILE=" + credentials}
	secrets := map[string]string{"far": "partner", "shut": "stranger", "lost": "nobody"}
	for name := range secrets {
		server.Put(t, other, name+"/dt=2026-01-01/f.csv", []byte(name+"\n"))
		o.Tables = append(o.Tables, mounttest.Table{Database: "sales", Name: name, Format: "csv", Keys: []string{"dt:date"}, Location: "s3://" + other + "/" + name})
	}
	lake := mounttest.New(t, o)
	for name, secret := range secrets {
		lake.PutManifest("sales/"+name, strings.Replace(lake.StoredManifest("sales/"+name), "{", `{"sqe": {"secret": "`+secret+`"},`, 1))
	}
	lake.Start("--allow-location=s3://"+other, "--config="+config)

	if got := lake.MustSh("cat sales/far/dt=2026-01-01/f.csv; echo mine > sales/far/dt=2026-01-01/g.csv"); got != "far\n" {
		t.Errorf("with the right credentials: %q", got)
	}
	if got := string(server.Get(t, other, "far/dt=2026-01-01/g.csv")); got != "mine\n" {
		t.Errorf("written with them: %q", got)
	}
	if _, err := lake.ReadFile("sales/shut/dt=2026-01-01/f.csv"); !strings.Contains(errorText(err), syscall.EACCES.Error()) {
		t.Errorf("with another's credentials: %v, want EACCES", err)
	}
	if got := lake.MustSh("cat sales/notes/dt=2026-01-01/a.csv"); got != "1,one\n" {
		t.Errorf("the table beside them: %q", got)
	}
	if _, err := lake.ReadFile("sales/lost/dt=2026-01-01/f.csv"); err == nil {
		t.Error("a table of an unknown secret is read")
	}
	if status := lake.MustSh("cat sales/lost/.lakefs/status.json"); !strings.Contains(status, "nobody") || !strings.Contains(status, "no profile of the settings") {
		t.Errorf("status of a table of an unknown secret: %s", status)
	}
	if strings.Contains(lake.Log(), "hidden") {
		t.Error("a secret is in the log")
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
