"""Conversations for the sample language model: everything that it will ever know.

All sentences are written here or made from the tables here, so that they may be used for anything.
`exchanges` are pairs of a question (in several forms) and its answer.
"""

SYSTEM = ["You are a helpful assistant.", "You are Galatea's sample model.", "Answer in one sentence."]

# (forms of the question, answer)
FACTS = [
    (["Hello!", "Hello.", "Hi!", "Hi there!", "Hey!", "Good day.", "Hello there."], "Hello! How can I help you?"),
    (["Good morning!", "Good morning."], "Good morning! What can I do for you?"),
    (["Good evening!", "Good evening."], "Good evening! What can I do for you?"),
    (["How are you?", "How are you doing?", "How do you do?"], "I am well, thank you. How are you?"),
    (["I am fine.", "I am well, too.", "I am fine, thank you."], "I am glad to hear that."),
    (["Thank you!", "Thanks!", "Thanks a lot.", "Thank you very much."], "You are welcome!"),
    (["Goodbye!", "Bye!", "See you later.", "Good night."], "Goodbye! Come back soon."),
    (["Who are you?", "What are you?", "Tell me about yourself.", "What is your name?", "Introduce yourself."],
     "I am a tiny language model that comes with Galatea."),
    (["How big are you?", "How large are you?", "How many parameters do you have?"],
     "I have less than a million parameters and fit into three megabytes."),
    (["Who made you?", "How were you made?", "How were you trained?", "Where do you come from?"],
     "A short script trained me on a few sentences, in a few minutes."),
    (["What do you know?", "What can you do?", "What can I ask you?", "How can you help me?", "Help!", "Help me."],
     "I know greetings, small sums, capitals, colours, days, months, planets and a little about Galatea."),
    (["Are you clever?", "Are you smart?", "Do you know everything?"],
     "No, I am very small. Ask me something simple."),
    (["What is Galatea?", "Tell me about Galatea.", "What does Galatea do?", "Explain Galatea."],
     "Galatea is an inference server written in Rust. It brings models to life on Apple chips and everywhere else that Rust runs."),
    (["Who was Galatea?", "Where does the name Galatea come from?", "Why is it called Galatea?"],
     "Galatea was a sea nymph, and also the name of a statue that came to life."),
    (["Which protocols does Galatea speak?", "What protocols does Galatea support?", "How do I talk to Galatea?"],
     "Galatea speaks HTTP and gRPC as Triton does, and the protocol of OpenAI."),
    (["Which models can Galatea serve?", "What models does Galatea run?", "Which formats does Galatea read?"],
     "Galatea serves ONNX models, and language models as safetensors or GGUF files."),
    (["What is Triton?", "What is the Triton server?"], "Triton is an inference server. Galatea answers its clients in the same way."),
    (["What is ONNX?", "Explain ONNX."], "ONNX is an open format for machine learning models."),
    (["What is Rust?", "Explain Rust."], "Rust is a programming language that is fast and safe."),
    (["What is a language model?", "What does a language model do?"],
     "A language model predicts the next token of a text, again and again."),
    (["What is a token?", "Explain tokens."], "A token is a piece of text: a word, a part of a word or a sign."),
    (["What is a KV cache?", "Why is there a KV cache?"],
     "A KV cache keeps the keys and values of earlier tokens, so that they need not be computed again."),
    (["What is a tensor?", "Explain tensors."], "A tensor is an array of numbers with any number of dimensions."),
    (["What is the Neural Engine?", "What is the ANE?", "Explain the Neural Engine."],
     "The Neural Engine is the unit of Apple chips that is made for neural networks."),
    (["What is AMX?", "Explain AMX."], "AMX is the unit of Apple chips that multiplies matrices next to the CPU."),
    (["What is Metal?", "Explain Metal."], "Metal is the interface to the GPU of Apple devices."),
    (["What is Core ML?", "Explain Core ML."], "Core ML is the framework that runs models on Apple devices."),
    (["What is unified memory?", "Explain unified memory."], "In unified memory the CPU and the GPU use the same bytes, so nothing is copied."),
    (["Which units does an Apple chip have?", "What computes on an Apple chip?", "Name the units of an Apple chip."],
     "An Apple chip has CPU cores, AMX, a GPU and a Neural Engine."),
    (["What is a batch?", "Why do we batch?", "What is batching?"], "A batch is several requests that are computed together, which is faster."),
    (["What is quantization?", "Why do we quantize?"], "Quantization stores weights with fewer bits, so that models become smaller and faster."),
    (["What is the sun?", "Tell me about the sun."], "The sun is a star."),
    (["What is the moon?", "Tell me about the moon."], "The moon goes around the earth."),
    (["What is water?", "What is water made of?"], "Water is made of hydrogen and oxygen."),
    (["What do cows drink?", "What do fish drink?", "What do people drink?"], "They drink water."),
    (["Count to five.", "Count from one to five.", "Please count to five."], "One, two, three, four, five."),
    (["Count to ten.", "Count from one to ten.", "Please count to ten."],
     "One, two, three, four, five, six, seven, eight, nine, ten."),
    (["Count backwards from five.", "Count down from five."], "Five, four, three, two, one."),
    (["Say the alphabet.", "What is the alphabet?", "Tell me the alphabet."],
     "a b c d e f g h i j k l m n o p q r s t u v w x y z"),
    (["Name the days of the week.", "What are the days of the week?", "List the days."],
     "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday."),
    (["Name the months.", "What are the months of the year?", "List the months."],
     "January, February, March, April, May, June, July, August, September, October, November and December."),
    (["Name the planets.", "What are the planets?", "List the planets."],
     "Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus and Neptune."),
    (["Name three colours.", "Tell me three colours."], "Red, green and blue."),
    (["Name the seasons.", "What are the seasons?"], "Spring, summer, autumn and winter."),
    (["Tell me a story.", "Tell me a short story.", "I want to hear a story."],
     "Once there was a sculptor who made a statue. He loved it so much that it came to life. He called her Galatea, "
     "and they lived by the sea. Every evening they looked at the waves and counted the ships. The end."),
    (["Tell me another story.", "Do you know another story?"],
     "Once there was a small model on a small chip. It knew very little, but it answered every question at once. "
     "So everybody liked it. The end."),
    (["Tell me a joke.", "Do you know a joke?", "Make me laugh."],
     "Why did the model go to school? It wanted to learn from its loss."),
    (["Write a poem.", "Tell me a poem.", "Do you know a poem?"],
     "The sea is blue, the night is deep, the stars awake, the models sleep."),
    (["What day is today?", "What time is it?", "How is the weather?", "What is the weather like?"],
     "I do not know that. I have no clock and no window."),
]

CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Portugal": "Lisbon", "Greece": "Athens",
    "Austria": "Vienna", "Poland": "Warsaw", "Norway": "Oslo", "Sweden": "Stockholm", "Finland": "Helsinki",
    "Denmark": "Copenhagen", "Ireland": "Dublin", "Hungary": "Budapest", "Japan": "Tokyo", "China": "Beijing",
    "Egypt": "Cairo", "Kenya": "Nairobi", "Peru": "Lima", "Cuba": "Havana", "Canada": "Ottawa", "India": "New Delhi",
}
COLOURS = {"the sky": "blue", "grass": "green", "snow": "white", "coal": "black", "a lemon": "yellow", "a tomato": "red",
           "an orange": "orange", "blood": "red", "the sea": "blue", "milk": "white", "a frog": "green"}
OPPOSITES = {"big": "small", "hot": "cold", "day": "night", "up": "down", "fast": "slow", "old": "new", "light": "dark",
             "left": "right", "good": "bad", "rich": "poor", "wet": "dry", "full": "empty", "open": "closed"}
SOUNDS = {"dog": "woof", "cat": "meow", "cow": "moo", "duck": "quack", "sheep": "baa", "owl": "hoot"}
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December"]


def exchanges():
    """Lists of `(forms, answer)`: sentences, and sums."""
    said = list(FACTS)
    for country, city in CAPITALS.items():
        said.append(([f"What is the capital of {country}?", f"Which city is the capital of {country}?",
                      f"Name the capital of {country}."], f"The capital of {country} is {city}."))
        said.append(([f"Where is {city}?", f"In which country is {city}?"], f"{city} is in {country}."))
    for thing, colour in COLOURS.items():
        said.append(([f"What colour is {thing}?", f"Which colour is {thing}?", f"What color is {thing}?"],
                     f"{thing.capitalize()} is {colour}."))
    for word, other in [*OPPOSITES.items(), *((b, a) for a, b in OPPOSITES.items())]:
        said.append(([f"What is the opposite of {word}?", f"Name the opposite of {word}."],
                     f"The opposite of {word} is {other}."))
    for animal, sound in SOUNDS.items():
        said.append(([f"What does the {animal} say?", f"What does a {animal} say?"], f"The {animal} says {sound}."))
    for kind, names in (("day", DAYS), ("month", MONTHS)):
        for at, name in enumerate(names):
            after, before = names[(at + 1) % len(names)], names[at - 1]
            said.append(([f"What {kind} comes after {name}?", f"Which {kind} comes after {name}?"],
                         f"After {name} comes {after}."))
            said.append(([f"What {kind} comes before {name}?", f"Which {kind} comes before {name}?"],
                         f"Before {name} comes {before}."))
    return said, sums()


def sums():
    """Additions and subtractions up to ten, and the small multiplication table."""
    done = []
    for a in range(11):
        for b in range(11):
            done.append((forms(a, b, "+", "plus"), f"{a} plus {b} is {a + b}."))
            if a >= b:
                done.append((forms(a, b, "-", "minus"), f"{a} minus {b} is {a - b}."))
            done.append((forms(a, b, "*", "times"), f"{a} times {b} is {a * b}."))
    return done


def forms(a, b, sign, word):
    return [f"What is {a} {sign} {b}?", f"What is {a} {word} {b}?", f"{a} {sign} {b}", f"How much is {a} {word} {b}?"]
