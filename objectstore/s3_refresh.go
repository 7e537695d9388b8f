package objectstore

// RefreshCredentials forgets all credentials that are held: the next request of
// each account gets new ones. Requests under way are not touched.
//
// The clients go too: a signer of the SDK's keeps what it derived from a secret
// key for as long as the key id is the same, and would sign with the old secret.
func (s *S3) RefreshCredentials() {
	s.main.invalidate()
	for _, account := range s.secrets {
		account.invalidate()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.mu.clients)
}
