import { createCipheriv, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectPlain, createServer, type Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'

/** Types of records and of handshake messages (RFC 8446 sections 5.1 and 4). */
export const recordType = { alert: 21, handshake: 22, data: 23 } as const
const keyUpdate = 24

/** HKDF-Expand-Label of SHA-256 for up to 32 bytes (RFC 8446 section 7.1). */
function expand(secret: Buffer, label: string, bytes: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`)
  const about = Buffer.concat([Buffer.from([0, bytes, name.length]), name, Buffer.from([0, 1])])
  return createHmac('sha256', secret).update(about).digest().subarray(0, bytes)
}

/** Seals records as a client of TLS 1.3 with AES-128-GCM does, also those that no library sends. */
export class Forger {
  #count = 0

  /** `secret`: that of the client's traffic (`CLIENT_TRAFFIC_SECRET_0` of a key log). No record was sealed by it yet. */
  constructor(private secret: Buffer) {}

  record(type: number, content: Uint8Array, paddingBytes = 0): Buffer {
    const nonce = expand(this.secret, 'iv', 12)
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ this.#count) >>> 0, 8)
    this.#count += 1
    const cipher = createCipheriv('aes-128-gcm', expand(this.secret, 'key', 16), nonce)
    const head = Buffer.from([23, 3, 3, 0, 0])
    head.writeUInt16BE(content.length + 1 + paddingBytes + 16, 3)
    cipher.setAAD(head)
    const inner = Buffer.concat([content, Buffer.from([type]), Buffer.alloc(paddingBytes)])
    return Buffer.concat([head, cipher.update(inner), cipher.final(), cipher.getAuthTag()])
  }

  /** A new key from now on (RFC 8446 section 4.6.3). `asks`: the other side is asked for one of its own. */
  newKey(asks: boolean): Buffer {
    const record = this.record(recordType.handshake, Buffer.from([keyUpdate, 0, 0, 1, asks ? 1 : 0]))
    this.secret = expand(this.secret, 'traffic upd', 32)
    this.#count = 0
    return record
  }
}

export interface Forging {
  readonly forger: Forger
  /** To the server. */
  readonly wire: Socket
  /** What a usual client makes of the server's bytes. */
  readonly client: TLSSocket
}

/** A usual client behind a relay, by which forged records go out in place of its own. */
export async function forging(port: number): Promise<Forging> {
  let wire: Socket | undefined
  const relay = createServer((inner) => {
    wire = connectPlain({ port, host: '127.0.0.1' })
    for (const one of [inner, wire]) one.on('error', () => 'a server may close on forged records')
    inner.on('data', (bytes) => wire?.write(bytes))
    wire.on('data', (bytes) => inner.write(bytes))
    wire.on('close', () => inner.destroy())
    relay.close()
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  const address = relay.address()
  const client = connect({
    port: typeof address === 'object' && address !== null ? address.port : 0,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    ciphers: 'TLS_AES_128_GCM_SHA256',
    minVersion: 'TLSv1.3',
  })
  let secret = ''
  client.on('keylog', (line: Buffer) => {
    const [label, , value = ''] = line.toString().trim().split(' ')
    if (label === 'CLIENT_TRAFFIC_SECRET_0') secret = value
  })
  client.on('error', () => 'it may not understand what follows')
  // The server's ticket: it has the client's last message of the handshake.
  await once(client, 'session')
  if (wire === undefined) throw new Error('nothing was relayed')
  return { forger: new Forger(Buffer.from(secret, 'hex')), wire, client }
}
