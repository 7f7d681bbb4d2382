import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import { runningServices, servicePorts } from '../../config/services.js'
import type { Part } from '../actor/supervise.js'
import { isEmbedded } from '../threads/chain-options.js'
import { folders } from '../threads/folders.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { settingsOf } from '../threads/thread-settings.js'
import type { UploadGiven, UploadReady } from '../threads/upload/upload-given.js'
import { networkOf } from './network.js'
import { nodeLine } from './node-line.js'
import { found, urlOf } from './ports.js'
import { privateSecret } from './private-secret.js'
import { securePlace, type TlsPlaces } from './tls-place.js'
import { webhookOptions } from './webhook-options.js'

/** The threads of the program, as far as this service needs them. */
interface UploadCrew {
  reported<Reported>(name: string): Reported
  line(name: string): MessagePort
  part(name: string, file: string, data: () => object): Part
}

/** The upload service where it runs: what finds its port and what starts its thread, and how it is reached. */
export interface UploadPlace {
  readonly ports: Part[]
  readonly parts: Part[]
  urls(): Readonly<Record<string, string>>
  /** Where it will listen: known before it does. */
  address(): { readonly upload?: string }
}

/** Whether the upload service runs in this program. */
export function hasUploads({ services, server }: Config): boolean {
  return runningServices(services, server.network).has('upload')
}

/** What the upload service is given by the rest of the program. */
export interface UploadServiceGiven {
  readonly host: string
  readonly nodes: () => readonly string[]
  readonly gateway: () => string
  readonly adminKey: () => string
  readonly tls: TlsPlaces
  /** Where the payment service of this program listens, and where browsers reach one. */
  readonly payment: () => { readonly payment?: string; readonly publicPayment?: string }
}

/** The upload service as a part of the program: its thread and port. Where it does not run: an empty one. */
export function uploadServiceOf(
  config: Config,
  shared: SharedMemory,
  crew: UploadCrew,
  given: UploadServiceGiven,
): UploadPlace {
  const { server, services } = config
  if (!hasUploads(config)) return { ports: [], parts: [], urls: () => ({}), address: () => ({}) }
  const running = runningServices(services, server.network)
  const { host, nodes, gateway, adminKey } = given
  let port = servicePorts(services, server.port).upload
  const secure = given.tls.listener(config.tls.uploadPort, 'UPLOAD_TLS_PORT')
  const data = (): UploadGiven => {
    const { payment, publicPayment } = given.payment()
    const publicPaymentUrl = publicPayment ?? (server.network === 'devnet' ? payment : undefined)
    const webhooks = webhookOptions(config, folders(config).keys)
    return {
      settings: settingsOf(config, 'upload'),
      memory: shared,
      serve: { host, port, lines: nodeLine(config) },
      ...securePlace(secure, config),
      nodes: nodes(),
      networkGateways: networkOf(config).gateways.map(({ url }) => url),
      adminKey: adminKey(),
      gateway: gateway(),
      ports: {
        ...(running.has('gateway') ? { catalog: crew.line('catalog'), ingest: crew.line('ingest') } : {}),
        ...(services.paymentUrl === undefined && running.has('payment')
          ? { payment: crew.line('payment') }
          : {}),
      },
      ...(services.paymentUrl === undefined
        ? {}
        : { paymentService: { url: services.paymentUrl, secret: privateSecret(config) } }),
      isLedgerShared: config.credits.databaseUrl !== undefined,
      ...(publicPaymentUrl === undefined ? {} : { publicPaymentUrl }),
      ...(webhooks?.uploads === true ? { webhooks } : {}),
      ...(isEmbedded(config) ? { mintAt: nodes()[0] ?? '' } : {}),
    }
  }
  return {
    ports: [
      found(host, port, 'UPLOAD_PORT', (free) => {
        port = free
      }),
      ...secure.parts,
    ],
    parts: [crew.part('upload', 'upload', data)],
    address: () => ({ upload: urlOf(host, port) }),
    urls: () => ({
      upload: urlOf(host, crew.reported<UploadReady>('upload').port),
      ...secure.urls('uploadHttps'),
    }),
  }
}
