import type { Transporter } from 'nodemailer'
import { expected } from '../../format/bug.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { Letter, Mailer } from './outbox.js'

export interface SmtpOptions {
  /** smtp:// or smtps://, with user and password where the server wants them. */
  readonly url: string
  /** Who the letters are from. */
  readonly from: string
  readonly limitMs: number
}

/** Letters by a mail server. The library is loaded with the first letter: most programs send none. */
export class SmtpMailer implements Mailer {
  readonly label = 'smtp'
  #transport: Promise<Transporter> | undefined

  constructor(private readonly options: SmtpOptions) {}

  async send({ id, to, subject, text }: Letter): Promise<true | { readonly permanent: string } | Refusal> {
    const { from } = this.options
    const host = from.slice(from.lastIndexOf('@') + 1).replace('>', '')
    try {
      const transport = await this.#open()
      // One receiver, as an object: an address that a stranger wrote is never read as a list.
      const letter = { from, to: { name: '', address: to }, subject, text, messageId: `<gift-${id}@${host}>` }
      await transport.sendMail(letter)
      return true
    } catch (error) {
      const { message } = expected(error)
      const { responseCode: code } = error as { readonly responseCode?: unknown }
      // RFC 5321 section 4.2.1: 5yz is for good. What is wrong with our own login is not the receiver's fault.
      const isForGood = typeof code === 'number' && code >= 500 && code !== 530 && code !== 535
      return isForGood
        ? { permanent: message }
        : refuse('upstream', 'upstream', `the mail server: ${message}`)
    }
  }

  close(): void {
    void this.#transport?.then((transport) => transport.close())
  }

  async #open(): Promise<Transporter> {
    this.#transport ??= import('nodemailer').then(({ createTransport }) => {
      const { url, limitMs } = this.options
      const times = { connectionTimeout: limitMs, greetingTimeout: limitMs, socketTimeout: limitMs }
      const { protocol, hostname, port, username, password } = new URL(url)
      const auth =
        username === ''
          ? {}
          : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }
      const isTls = protocol === 'smtps:'
      return createTransport({
        ...times,
        ...auth,
        host: hostname,
        secure: isTls,
        pool: true,
        maxConnections: 2,
        port: port === '' ? (isTls ? 465 : 587) : Number(port),
        // A password never goes out in the clear, but to this machine.
        requireTLS: !isTls && username !== '' && !['127.0.0.1', 'localhost', '[::1]'].includes(hostname),
        disableFileAccess: true,
        disableUrlAccess: true,
      })
    })
    return this.#transport
  }
}
