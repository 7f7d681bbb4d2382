/** A certificate with its chain and key, as a listener takes them. */
export interface CertificatePair {
  /** DNS names that it is for, lower case; each may begin with `*.`, which stands for one label. */
  readonly names: readonly string[]
  /** The chain, PEM; the certificate itself first. */
  readonly cert: string
  /** PEM without a passphrase. */
  readonly key: string
}
