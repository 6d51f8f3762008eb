from project.config import get_config
from project.engine import Engine

if __name__ == "__main__":
    Engine(get_config()).fit()
