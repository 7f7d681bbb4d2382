import type { MeterRow } from './meter.js'

/** Metrics about certificates. */
export const tlsMeters: readonly MeterRow[] = [
  {
    name: 'tls_certificate_expires_timestamp_seconds',
    kind: 'gauge',
    help: 'When the first of the certificates in use expires, Unix time; 0: none is in use.',
  },
  {
    name: 'tls_certificates_refused',
    kind: 'gauge',
    help: 'Certificates whose files cannot be used; those of before stay in use.',
  },
  {
    name: 'tls_renewals_total',
    kind: 'counter',
    help: 'Attempts to get a certificate from the ACME server.',
    labels: { outcome: ['issued', 'failed'] },
  },
]
