/** The parts that heads of real clients are made of. */
const agents = [
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15',
  'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
  'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36',
  'axios/1.12.2',
  'Go-http-client/1.1',
  'node-fetch/1.0 (+https://github.com/bitinn/node-fetch)',
]
const accepts = [
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8',
  'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8',
  '*/*',
  'application/json, text/plain, */*',
]
const languages = [
  'en-US,en;q=0.9',
  'de-DE,de;q=0.9,en;q=0.7',
  'ja',
  'pt-BR,pt;q=0.8,en-US;q=0.6',
  'en-GB,en;q=0.5',
]

/** Header lines of 64 kinds of clients: no two heads are the same, and they have 3 to 9 lines. */
export const clientKinds: readonly (readonly string[])[] = Array.from({ length: 64 }, (_, at) => {
  const agent = agents[at % agents.length] ?? ''
  const isBrowser = agent.startsWith('Mozilla')
  return [
    `User-Agent: ${agent}`,
    `Accept: ${accepts[(at >> 3) % accepts.length]}`,
    `X-Forwarded-For: 203.0.${at}.${(at * 37) % 250}`,
    ...(isBrowser
      ? [`Accept-Language: ${languages[at % languages.length]}`, 'Accept-Encoding: gzip, deflate, br']
      : []),
    ...(isBrowser && at % 3 === 0 ? ['Sec-Fetch-Dest: image', 'Sec-Fetch-Mode: no-cors'] : []),
    ...(isBrowser && at % 4 === 0 ? [`Referer: https://app-${at}.example/`] : []),
    ...(at % 5 === 0 ? ['X-Forwarded-Proto: https'] : []),
  ]
})
