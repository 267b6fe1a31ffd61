/// Certificates for tests, and the shared key of all servers, which protects nothing. Unexpired ones are valid until
/// 2120.
package enum Certificates {
    /// The authority that signed the others.
    package static let authority = """
        -----BEGIN CERTIFICATE-----
        MIIBWzCCAQGgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlBdXRob3Jp
        dHkwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
        CUF1dGhvcml0eTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNTn+GqkvPNIW1MS
        WgbYZCmhUNq4DXpP/41pWLDf4BrDl6vqCDgtenKeS6T7kcQm0+WgmsGQINJuwXBq
        PxAv31KjQjBAMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgIEMB0GA1Ud
        DgQWBBS40TTE8bv+fzRCDKC+yniJed8XkDAKBggqhkjOPQQDAgNIADBFAiEAoe3L
        RizaVixXHnlVUcyxE4lbana4l0TdNFHtBAS0RsECICMPVaHRrBjnyNadEnC5ecUn
        Sn/CE3VmT8fpR2Qv3QVN
        -----END CERTIFICATE-----
        """
    /// For 127.0.0.1.
    package static let loopback = """
        -----BEGIN CERTIFICATE-----
        MIIBaDCCAQ+gAwIBAgIBAjAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlBdXRob3Jp
        dHkwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBExDzANBgNVBAMM
        BlNlcnZlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABDLd9lpxpjmLgmg/eOWk
        iKuAa58TPZ51Fp81O6RyxAYC3YM0Rk639nTDOQOeGulgn+3t7YlxUtcDFuM6JvHc
        JRWjUzBRMA8GA1UdEQQIMAaHBH8AAAEwHQYDVR0OBBYEFIB8s1xv9dx+FjmDexRO
        /E4tOx2vMB8GA1UdIwQYMBaAFLjRNMTxu/5/NEIMoL7KeIl53xeQMAoGCCqGSM49
        BAMCA0cAMEQCIDvrQr3r7AFxk3fm94/X0uULVi8zfz58SUnjIm09Bs1VAiAETFkr
        MlAW6WV+5yQzxcs3wIyhx1hz0U/Rga8TVl5DPg==
        -----END CERTIFICATE-----
        """
    /// For other.example.
    package static let otherName = """
        -----BEGIN CERTIFICATE-----
        MIIBczCCARigAwIBAgIBAzAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlBdXRob3Jp
        dHkwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBExDzANBgNVBAMM
        BlNlcnZlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABDLd9lpxpjmLgmg/eOWk
        iKuAa58TPZ51Fp81O6RyxAYC3YM0Rk639nTDOQOeGulgn+3t7YlxUtcDFuM6JvHc
        JRWjXDBaMBgGA1UdEQQRMA+CDW90aGVyLmV4YW1wbGUwHQYDVR0OBBYEFIB8s1xv
        9dx+FjmDexRO/E4tOx2vMB8GA1UdIwQYMBaAFLjRNMTxu/5/NEIMoL7KeIl53xeQ
        MAoGCCqGSM49BAMCA0kAMEYCIQCvF4XySKAgtVl9CnrIszGKPj4yg16b8Hq4aNaI
        EBpajAIhAKJODxS85MDh6CiTi8MFqb01GOhYMaMWYW7w7AiUpaOF
        -----END CERTIFICATE-----
        """
    /// For 127.0.0.1, in January 2020.
    package static let expired = """
        -----BEGIN CERTIFICATE-----
        MIIBZjCCAQ2gAwIBAgIBBDAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlBdXRob3Jp
        dHkwHhcNMjAwMTAxMDAwMDAwWhcNMjAwMjAxMDAwMDAwWjARMQ8wDQYDVQQDDAZT
        ZXJ2ZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQy3fZacaY5i4JoP3jlpIir
        gGufEz2edRafNTukcsQGAt2DNEZOt/Z0wzkDnhrpYJ/t7e2JcVLXAxbjOibx3CUV
        o1MwUTAPBgNVHREECDAGhwR/AAABMB0GA1UdDgQWBBSAfLNcb/XcfhY5g3sUTvxO
        LTsdrzAfBgNVHSMEGDAWgBS40TTE8bv+fzRCDKC+yniJed8XkDAKBggqhkjOPQQD
        AgNHADBEAiBEM584iDGot22ZpMHgwM6jLoxP8vq+js/WykiEN4cP1wIgE2TkoJ9s
        vEdXRiVtSVEu8/embY/crsUCHeZXhTFV1m4=
        -----END CERTIFICATE-----
        """
    /// For 127.0.0.1, signed by its own key.
    package static let selfSigned = """
        -----BEGIN CERTIFICATE-----
        MIIBRTCB66ADAgECAgEFMAoGCCqGSM49BAMCMBExDzANBgNVBAMMBlNlcnZlcjAg
        Fw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowETEPMA0GA1UEAwwGU2Vy
        dmVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMt32WnGmOYuCaD945aSIq4Br
        nxM9nnUWnzU7pHLEBgLdgzRGTrf2dMM5A54a6WCf7e3tiXFS1wMW4zom8dwlFaMy
        MDAwDwYDVR0RBAgwBocEfwAAATAdBgNVHQ4EFgQUgHyzXG/13H4WOYN7FE78Ti07
        Ha8wCgYIKoZIzj0EAwIDSQAwRgIhAMjW9oOKP2lOpTNkt2kgpcEe0PYJ9CZMSHwz
        FvRXT2BHAiEAnSLwjM/H2dcRl82V/uvtpuR+ipwdebaUBpuEfW9jONI=
        -----END CERTIFICATE-----
        """
    package static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgJxORxFsYpMZiEZne
        8MV6NI/vaRkAblD9QD23q8uYr9OhRANCAAQy3fZacaY5i4JoP3jlpIirgGufEz2e
        dRafNTukcsQGAt2DNEZOt/Z0wzkDnhrpYJ/t7e2JcVLXAxbjOibx3CUV
        -----END PRIVATE KEY-----
        """
}
