import type { Ports } from './ports.js'
import { custom, maybeText, maybeWhole, type Parsed, readUrl, secret } from './setting.js'

/** The services of the program, and the two beside the gateway. */

export const serviceNames = ['gateway', 'upload', 'payment'] as const
export type ServiceName = (typeof serviceNames)[number]

function readServices(given: string): Parsed<readonly ServiceName[] | undefined> {
  const words = given.split(',').map((word) => word.trim())
  const value = serviceNames.filter((name) => words.includes(name))
  const unknown = words.filter((word) => !serviceNames.some((name) => name === word))
  return unknown.length === 0 && value.length > 0
    ? { value }
    : { wrong: `must be one or more of: ${serviceNames.join(', ')}, comma between` }
}

export const services = {
  enabled: custom<readonly ServiceName[] | undefined>({
    env: 'SERVICES',
    allowed: 'gateway, upload, payment, comma between',
    defaultText: '',
    default: undefined,
    read: readServices,
    why: 'What runs in this program: all three on devnet, the gateway on mainnet.',
  }),
  uploadPort: maybeWhole({
    env: 'UPLOAD_PORT',
    min: 0,
    max: 65_535,
    why: 'Where the upload service listens; 0: any free port. Unset: 3001, any free one where PORT is 0.',
  }),
  paymentPort: maybeWhole({
    env: 'PAYMENT_PORT',
    min: 0,
    max: 65_535,
    why: 'Where the payment service listens; 0: any free port. Unset: 3002, any free one where PORT is 0.',
  }),
  privateRouteSecret: secret(
    maybeText({
      env: 'PRIVATE_ROUTE_SECRET',
      allowed: 'at least 16 characters',
      shape: /^[\x21-\x7e]{16,512}$/,
      why: 'Opens the payment service to the upload service, where both do not run in one program; made at the first start.',
    }),
  ),
  paymentUrl: custom<string | undefined>({
    env: 'PAYMENT_SERVICE_URL',
    allowed: 'an http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why: 'The payment service that the upload service asks. Unset: the one of this program.',
  }),
  paymentPublicUrl: custom<string | undefined>({
    env: 'PAYMENT_PUBLIC_URL',
    allowed: 'an http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why: 'Where browsers reach the payment service, for links and prices in dollars. Unset: on devnet the one of this program.',
  }),
  uploadUrl: custom<string | undefined>({
    env: 'UPLOAD_SERVICE_URL',
    allowed: 'an http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why: 'The upload service that the payment service asks what is free for a wallet. Unset: the one of this program.',
  }),
}

interface GivenServices {
  readonly enabled: readonly ServiceName[] | undefined
  readonly uploadPort: number | undefined
  readonly paymentPort: number | undefined
}

/** What runs. */
export function runningServices(
  { enabled }: Pick<GivenServices, 'enabled'>,
  network: 'devnet' | 'mainnet',
): ReadonlySet<ServiceName> {
  return new Set(enabled ?? (network === 'devnet' ? serviceNames : ['gateway']))
}

/** Where the two services listen; 0: on any free port. */
export function servicePorts(
  { uploadPort, paymentPort }: GivenServices,
  port: number,
): { readonly upload: number; readonly payment: number } {
  const free = port === 0
  return { upload: uploadPort ?? (free ? 0 : 3001), payment: paymentPort ?? (free ? 0 : 3002) }
}

/** Ports of the two services, by their settings, where they run. */
export function runningPorts(given: GivenServices, network: 'devnet' | 'mainnet', port: number): Ports {
  const running = runningServices(given, network)
  const { upload, payment } = servicePorts(given, port)
  return {
    ...(running.has('upload') ? { UPLOAD_PORT: upload } : {}),
    ...(running.has('payment') ? { PAYMENT_PORT: payment } : {}),
  }
}
