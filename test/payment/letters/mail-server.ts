import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Test } from 'tap'

/** What a mail server received: the words of the session, and each letter. */
export interface MailServer {
  readonly port: number
  readonly letters: string[]
  readonly receivers: string[]
  /** Answers to RCPT, first come first served; else 250. */
  readonly answers: string[]
}

/** A mail server of a few words (RFC 5321), which takes everything unless `answers` refuses it. */
export async function mailServer(t: Test): Promise<MailServer> {
  const mail: MailServer & { port: number } = { port: 0, letters: [], receivers: [], answers: [] }
  const server = createServer((socket) => {
    let rest = ''
    let letter: string[] | undefined
    const say = (line: string): void => void socket.write(`${line}\r\n`)
    const hear = (line: string): void => {
      if (letter !== undefined) {
        if (line !== '.') letter.push(line)
        else {
          mail.letters.push(letter.join('\n'))
          letter = undefined
          say('250 taken')
        }
        return
      }
      const word = line.slice(0, 4).toUpperCase()
      if (word === 'RCPT') {
        mail.receivers.push(line)
        say(mail.answers.shift() ?? '250 fine')
      } else if (word === 'DATA') {
        letter = []
        say('354 go on')
      } else if (word === 'QUIT') {
        say('221 bye')
        socket.end()
      } else say('250 fine')
    }
    socket.on('error', () => undefined)
    socket.on('data', (bytes: Buffer) => {
      const lines = (rest + bytes.toString()).split('\r\n')
      rest = lines.pop() ?? ''
      for (const line of lines) hear(line)
    })
    say('220 mail.test')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const place = server.address()
  mail.port = typeof place === 'object' && place !== null ? place.port : 0
  return mail
}
