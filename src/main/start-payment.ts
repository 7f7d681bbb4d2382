import type { Config } from '../../config/read.js'
import { runningServices, servicePorts } from '../../config/services.js'
import type { Part } from '../actor/supervise.js'
import type { PaymentGiven, PaymentReady } from '../threads/payment/payment-given.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { settingsOf } from '../threads/thread-settings.js'
import { cdpKey } from './cashier-thread.js'
import { nodeLine } from './node-line.js'
import { found, urlOf } from './ports.js'
import { privateSecret } from './private-secret.js'
import { hasUploads } from './start-upload.js'
import { securePlace, type TlsPlaces } from './tls-place.js'

/** The threads of the program, as far as this service needs them. */
interface PaymentCrew {
  reported<Reported>(name: string): Reported
  part(name: string, file: string, data: () => object): Part
}

/** The payment service where it runs: what finds its port and what starts its thread, and how it is reached. */
export interface PaymentPlace {
  readonly ports: Part[]
  readonly parts: Part[]
  urls(): Readonly<Record<string, string>>
  /** Where it will listen: known before it does. */
  address(): { readonly payment?: string; readonly publicPayment?: string }
}

/** The payment service as a part of the program: its thread and port. Where it does not run: an empty one. */
export function paymentServiceOf(
  config: Config,
  shared: SharedMemory,
  crew: PaymentCrew,
  given: {
    readonly host: string
    readonly nodes: () => readonly string[]
    readonly gateway: () => string
    readonly adminKey: () => string
    readonly tls: TlsPlaces
  },
): PaymentPlace {
  const { server, services } = config
  const { paymentPublicUrl: publicPayment } = services
  const named = publicPayment === undefined ? {} : { publicPayment }
  if (!runningServices(services, server.network).has('payment'))
    return { ports: [], parts: [], urls: () => ({}), address: () => named }
  const { host, nodes, gateway, adminKey } = given
  let port = servicePorts(services, server.port).payment
  const secure = given.tls.listener(config.tls.paymentPort, 'PAYMENT_TLS_PORT')
  const data = (): PaymentGiven => {
    const cdp = cdpKey(config)
    return {
      settings: settingsOf(config, 'payment'),
      memory: shared,
      serve: { host, port, lines: nodeLine(config) },
      ...securePlace(secure, config),
      nodes: nodes(),
      adminKey: adminKey(),
      gateway: gateway(),
      privateSecret: privateSecret(config),
      isUploadHere: hasUploads(config),
      ...(cdp === undefined ? {} : { cdp }),
    }
  }
  return {
    ports: [
      found(host, port, 'PAYMENT_PORT', (free) => {
        port = free
      }),
      ...secure.parts,
    ],
    parts: [crew.part('payment', 'payment', data)],
    address: () => ({ ...named, payment: urlOf(host, port) }),
    urls: () => ({
      payment: urlOf(host, crew.reported<PaymentReady>('payment').port),
      ...secure.urls('paymentHttps'),
    }),
  }
}
