/**
 * A text of others on one line: control characters are written as in JSON. Names of files and words of services could otherwise
 * start lines that look like ours, or steer the terminal.
 */
export function oneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, (char) => {
    const short = JSON.stringify(char).slice(1, -1)
    return short === char ? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}` : short
  })
}
